-- name slack_candidates
-- description What comes next when the critical path gets shorter: work that is not on it and has
--     little slack before the end of the last step moves.
-- param rank BIGINT NULL Only this rank; all where NULL.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
-- param within_us DOUBLE 1000 Most slack, us.
-- param top BIGINT 20 Rows at most.
SELECT
    t.rank,
    t.class,
    t.name,
    COUNT(*) AS tasks,
    SUM(r.dur) / 1e6 AS total_ms,
    MIN(r.slack) / 1e3 AS least_slack_us,
    MEDIAN(r.slack) / 1e3 AS median_slack_us
FROM replay_slice AS r
JOIN task AS t ON t.task_id = r.task_id
WHERE r.scenario_id = 0 AND r.dur > 0 AND NOT r.critical AND r.slack <= $within_us * 1e3
    -- What comes before the steps holds their end as the path does, but is not part of it.
    AND r.ts >= COALESCE((SELECT MIN(w.ts) FROM step_window AS w), r.ts)
    AND ($rank IS NULL OR t.rank = $rank)
    AND is_chosen($ranks, t.rank)
    AND ($first_step IS NULL OR t.step >= $first_step)
    AND ($last_step IS NULL OR t.step <= $last_step)
GROUP BY t.rank, t.class, t.name
ORDER BY total_ms DESC, t.rank, t.name
LIMIT $top

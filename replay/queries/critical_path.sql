-- name critical_path
-- description What the end of the last step hangs on, over all ranks: the longest pieces of the
--     critical path in each step, and what each waited for.
-- param step BIGINT NULL Only this step; all where NULL.
-- param rank BIGINT NULL Only pieces on this rank; all where NULL.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
-- param top BIGINT 20 Rows at most.
SELECT
    p.step,
    p.ts / 1e6 AS from_ms,
    p.total_dur / 1e6 AS total_ms,
    100 * p.total_dur / NULLIF(SUM(p.total_dur) OVER (PARTITION BY p.step), 0) AS percent_of_step,
    p.lag_dur / 1e3 AS lag_us,
    p.residual_dur / 1e3 AS residual_us,
    p.rank,
    p.lane,
    p.class,
    p.name,
    p.module,
    p.edge_kind AS waited_by
FROM critical_path AS p
WHERE
    p.scenario_id = 0
    AND ($step IS NULL OR p.step = $step)
    AND ($first_step IS NULL OR p.step >= $first_step)
    AND ($last_step IS NULL OR p.step <= $last_step)
QUALIFY
    ($rank IS NULL OR p.rank = $rank)
    AND is_chosen($ranks, p.rank)
ORDER BY p.total_dur DESC, p.position
LIMIT $top

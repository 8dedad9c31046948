-- name allocation_cost
-- description Calls that take memory from the device or give it back in the steps of the host, and how
--     long the critical path runs through them.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL Only from this step on.
-- param last_step BIGINT NULL Only up to this step.
WITH
hosts AS (
    SELECT
        t.rank,
        MIN(COALESCE(p.ts, w.ts)) AS ts,
        MAX(COALESCE(p.ts + p.dur, w.ts + w.dur)) AS end_ts,
        COUNT(DISTINCT w.step) AS steps
    FROM step_window AS w
    CROSS JOIN trace AS t
    LEFT JOIN step AS p
        ON p.trace_id = t.trace_id AND p.step = w.step AND p.source = 'ProfilerStep'
    WHERE ($first_step IS NULL OR w.step >= $first_step)
        AND ($last_step IS NULL OR w.step <= $last_step)
        AND ($ranks IS NULL OR t.rank IN (SELECT UNNEST(STRING_SPLIT($ranks::VARCHAR, ','))::BIGINT))
    GROUP BY t.rank
),
path AS (
    SELECT
        p.slice_id,
        SUM(p.total_dur) AS dur
    FROM critical_path AS p
    WHERE p.scenario_id = 0 AND p.slice_id IS NOT NULL
    GROUP BY p.slice_id
)
SELECT
    r.rank,
    r.api,
    COUNT(*) AS calls,
    SUM(r.dur) / ANY_VALUE(h.steps) AS step_dur,
    MAX(r.dur) AS max_dur,
    COUNT(p.slice_id) AS calls_on_path,
    COALESCE(SUM(p.dur), 0) / ANY_VALUE(h.steps) AS step_path_dur,
    MODE(a.name ORDER BY a.name) AS inside
FROM runtime AS r
JOIN hosts AS h ON h.rank = r.rank AND r.ts >= h.ts AND r.ts < h.end_ts
JOIN slice AS s ON s.id = r.id
LEFT JOIN slice AS a ON a.id = s.parent_id
LEFT JOIN path AS p ON p.slice_id = r.id
WHERE r.kind IN ('malloc', 'free')
GROUP BY r.rank, r.api
ORDER BY step_dur DESC, r.rank, r.api

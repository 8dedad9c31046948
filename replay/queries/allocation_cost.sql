-- name allocation_cost
-- description Calls that take memory from the device or give it back in the steps of the host, and how
--     long the critical path runs through them.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
hosts AS (
    SELECT h.*
    FROM host_span($ranks, $first_step, $last_step) AS h
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

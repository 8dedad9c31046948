-- name profiler_overhead
-- description What the profiler itself took in the steps of the host, as far as it wrote that down
--     (rows of category overhead), and its share of the time of these steps.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
hosts AS (
    SELECT h.*
    FROM host_span($ranks, $first_step, $last_step) AS h
),
whole AS (
    SELECT
        SUM(h.steps) AS rank_steps,
        SUM(h.end_ts - h.ts) AS dur
    FROM hosts AS h
)
SELECT
    s.name,
    COUNT(*) AS n,
    SUM(s.dur) / ANY_VALUE(w.rank_steps) AS step_dur,
    SUM(s.dur) / NULLIF(ANY_VALUE(w.dur), 0) AS time_frac,
    MAX(s.dur) AS max_dur
FROM slice AS s
JOIN hosts AS h ON h.rank = s.rank AND s.ts >= h.ts AND s.ts < h.end_ts
CROSS JOIN whole AS w
WHERE s.cat = 'overhead'
GROUP BY s.name
ORDER BY step_dur DESC, s.name

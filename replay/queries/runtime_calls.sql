-- name runtime_calls
-- description Calls of the runtime and driver in the steps of the host: how many a step and rank,
--     what one costs, and how many take longer than 100 us.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
hosts AS (
    SELECT h.*
    FROM host_span($ranks, $first_step, $last_step) AS h
),
whole AS (
    SELECT SUM(h.steps) AS rank_steps
    FROM hosts AS h
)
SELECT
    r.api,
    ANY_VALUE(r.kind) AS kind,
    COUNT(*) AS calls,
    COUNT(*) / ANY_VALUE(w.rank_steps) AS step_calls,
    SUM(r.dur) / ANY_VALUE(w.rank_steps) AS step_dur,
    MEDIAN(r.dur) AS med_dur,
    QUANTILE_CONT(r.dur, 0.95) AS p95_dur,
    MAX(r.dur) AS max_dur,
    COUNT(*) FILTER (r.dur > 100000) AS slow_calls,
    COALESCE(SUM(r.dur) FILTER (r.dur > 100000), 0) / ANY_VALUE(w.rank_steps) AS step_slow_dur
FROM runtime AS r
JOIN hosts AS h ON h.rank = r.rank AND r.ts >= h.ts AND r.ts < h.end_ts
CROSS JOIN whole AS w
GROUP BY r.api
ORDER BY step_dur DESC, r.api

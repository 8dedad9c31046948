-- name runtime_calls
-- description Calls of the runtime and driver in the steps of the host: how many a step and rank,
--     what one costs, and how many take longer than 100 us.
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

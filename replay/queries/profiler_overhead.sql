-- name profiler_overhead
-- description What the profiler itself took in the steps of the host, as far as it wrote that down
--     (rows of category overhead), and its share of the time of these steps.
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

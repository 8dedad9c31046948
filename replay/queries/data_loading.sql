-- name data_loading
-- description Fetching of batches on each rank in the steps of the host: how long the loop waits for
--     the loader, per step (outermost rows that name a DataLoader).
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
loading AS (
    SELECT
        s.rank,
        s.name,
        s.ts,
        s.dur,
        MAX(s.ts + s.dur) OVER (
            PARTITION BY s.utid ORDER BY s.ts, s.depth
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reach
    FROM slice AS s
    WHERE s.name LIKE '%DataLoader%' AND s.cat IN ('user_annotation', 'cpu_op')
)
SELECT
    h.rank,
    o.name,
    COUNT(*) AS calls,
    SUM(o.dur) / ANY_VALUE(h.steps) AS step_dur,
    SUM(o.dur) / NULLIF(ANY_VALUE(h.end_ts) - ANY_VALUE(h.ts), 0) AS time_frac,
    MEDIAN(o.dur) AS med_dur,
    MAX(o.dur) AS max_dur
FROM loading AS o
JOIN hosts AS h ON h.rank = o.rank AND o.ts >= h.ts AND o.ts < h.end_ts
WHERE o.reach IS NULL OR o.ts >= o.reach
GROUP BY h.rank, o.name
ORDER BY h.rank, step_dur DESC, o.name

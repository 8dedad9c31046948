-- name kernel_lengths
-- description Kernels by how long one takes: how many are so short that starting them costs more.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL Only from this step on.
-- param last_step BIGINT NULL Only up to this step.
WITH
chosen AS (
    SELECT
        MIN(w.ts) AS ts,
        MAX(w.ts + w.dur) AS end_ts,
        COUNT(*) AS steps
    FROM step_window AS w
    WHERE ($first_step IS NULL OR w.step >= $first_step)
        AND ($last_step IS NULL OR w.step <= $last_step)
),
worked AS (
    SELECT
        k.rank,
        COALESCE(k.device, 0) AS device,
        k.dur,
        CASE
            WHEN k.dur < 5000 THEN 0
            WHEN k.dur < 10000 THEN 5000
            WHEN k.dur < 100000 THEN 10000
            WHEN k.dur < 1000000 THEN 100000
            ELSE 1000000
        END AS at_least_dur
    FROM kernel AS k
    CROSS JOIN chosen AS c
    WHERE k.class NOT IN ('collective', 'memcpy', 'memset') AND k.ts >= c.ts AND k.ts < c.end_ts
        AND ($ranks IS NULL OR k.rank IN (SELECT UNNEST(STRING_SPLIT($ranks::VARCHAR, ','))::BIGINT))
),
devices AS (
    SELECT COUNT(DISTINCT (w.rank, w.device)) AS n
    FROM worked AS w
)
SELECT
    w.at_least_dur,
    COUNT(*) AS instances,
    COUNT(*) / SUM(COUNT(*)) OVER () AS instances_frac,
    COUNT(*) / (ANY_VALUE(c.steps) * ANY_VALUE(d.n)) AS step_instances,
    SUM(w.dur) / (ANY_VALUE(c.steps) * ANY_VALUE(d.n)) AS step_dur,
    SUM(w.dur) / NULLIF(SUM(SUM(w.dur)) OVER (), 0) AS time_frac
FROM worked AS w
CROSS JOIN chosen AS c
CROSS JOIN devices AS d
GROUP BY w.at_least_dur
ORDER BY w.at_least_dur

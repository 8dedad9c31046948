-- name kernel_lengths
-- description Kernels by how long one takes: how many are so short that starting them costs more.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
chosen AS (
    SELECT s.*
    FROM step_span($first_step, $last_step) AS s
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
        AND is_chosen($ranks, k.rank)
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

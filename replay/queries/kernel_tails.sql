-- name kernel_tails
-- description Kernels that sometimes take longer than their equals (same name, launch geometry and
--     shapes): what the time above the median of these adds up to.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
-- param least BIGINT 8 Equals that there must be.
WITH
chosen AS (
    SELECT s.*
    FROM step_span($first_step, $last_step) AS s
),
worked AS (
    SELECT
        k.rank,
        COALESCE(k.device, 0) AS device,
        k.short_name,
        k.class,
        k.dur,
        s.name AS op,
        MEDIAN(k.dur) OVER equals AS med_dur,
        COUNT(*) OVER equals AS n_equals
    FROM kernel AS k
    CROSS JOIN chosen AS c
    LEFT JOIN cpu_op AS o ON o.id = k.op_id
    LEFT JOIN slice AS s ON s.id = k.op_id
    WHERE k.class NOT IN ('collective', 'memcpy', 'memset') AND k.ts >= c.ts AND k.ts < c.end_ts
        AND is_chosen($ranks, k.rank)
    WINDOW equals AS (PARTITION BY k.name, k.grid, k.block, s.name, o.input_dims)
),
devices AS (
    SELECT COUNT(DISTINCT (w.rank, w.device)) AS n
    FROM worked AS w
)
SELECT
    w.short_name,
    ANY_VALUE(w.class) AS class,
    w.op,
    COUNT(*) AS instances,
    COUNT(*) FILTER (w.dur > 1.2 * w.med_dur) AS slow_instances,
    QUANTILE_CONT(w.dur / w.med_dur, 0.95) AS p95_factor,
    MAX(w.dur / w.med_dur) AS max_factor,
    SUM(GREATEST(w.dur - w.med_dur, 0)) / (ANY_VALUE(c.steps) * ANY_VALUE(d.n)) AS step_above_dur,
    ARG_MAX(w.rank, (w.dur / w.med_dur, -w.rank)) AS slowest_rank
FROM worked AS w
CROSS JOIN chosen AS c
CROSS JOIN devices AS d
WHERE w.n_equals >= $least AND w.med_dur > 0
GROUP BY w.short_name, w.op
HAVING COUNT(*) FILTER (w.dur > 1.2 * w.med_dur) > 0
ORDER BY step_above_dur DESC, w.short_name, w.op

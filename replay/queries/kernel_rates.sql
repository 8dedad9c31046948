-- name kernel_rates
-- description Kernels by name and shapes of their operator, with the FLOPs that the shapes tell: an
--     operator's go to its matrix kernels by their time, else to all its kernels as op_calls.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
chosen AS (
    SELECT s.*
    FROM step_span($first_step, $last_step) AS s
),
counted AS (
    SELECT
        o.id,
        s.utid,
        s.ts,
        s.ts + s.dur AS end_ts
    FROM cpu_op AS o
    JOIN slice AS s ON s.id = o.id
    WHERE o.flops IS NOT NULL
),
launched AS (
    SELECT
        k.id,
        k.rank,
        COALESCE(k.device, 0) AS device,
        k.name,
        k.short_name,
        k.class,
        k.class IN ('gemm', 'attention', 'convolution') AS is_matrix,
        k.ts,
        k.dur,
        k.op_id,
        COALESCE(r.utid, -1) AS utid,
        COALESCE(r.ts, k.ts) AS at
    FROM kernel AS k
    LEFT JOIN slice AS r ON r.id = k.runtime_id
    WHERE k.cat = 'kernel' AND k.class <> 'collective'
        AND is_chosen($ranks, k.rank)
),
joined AS (
    SELECT
        l.*,
        COALESCE(CASE WHEN l.at < f.end_ts THEN f.id END, l.op_id) AS work_op_id
    FROM launched AS l
    ASOF LEFT JOIN counted AS f ON f.utid = l.utid AND f.ts <= l.at
),
shared AS (
    SELECT
        j.*,
        BOOL_OR(j.is_matrix) OVER of_op AS has_matrix,
        SUM(GREATEST(j.dur, 1)) OVER of_op AS op_dur,
        SUM(GREATEST(j.dur, 1)) FILTER (j.is_matrix) OVER of_op AS op_matrix_dur
    FROM joined AS j
    WINDOW of_op AS (PARTITION BY j.work_op_id)
),
worked AS (
    SELECT
        x.*,
        s.name AS op,
        o.input_dims,
        o.input_type,
        o.flops,
        CASE
            WHEN x.work_op_id IS NULL OR (x.has_matrix AND NOT x.is_matrix) THEN 0
            ELSE GREATEST(x.dur, 1) / CASE WHEN x.has_matrix THEN x.op_matrix_dur ELSE x.op_dur END
        END AS share
    FROM shared AS x
    CROSS JOIN chosen AS c
    LEFT JOIN slice AS s ON s.id = x.work_op_id
    LEFT JOIN cpu_op AS o ON o.id = x.work_op_id
    WHERE x.ts >= c.ts AND x.ts < c.end_ts
),
devices AS (
    SELECT COUNT(DISTINCT (w.rank, w.device)) AS n
    FROM worked AS w
)
SELECT
    w.name,
    ANY_VALUE(w.short_name) AS short_name,
    ANY_VALUE(w.class) AS class,
    w.op,
    w.input_dims,
    w.input_type,
    COUNT(*) AS instances,
    SUM(w.dur)::BIGINT AS total_dur,
    SUM(w.dur) / (ANY_VALUE(c.steps) * ANY_VALUE(d.n)) AS step_dur,
    SUM(w.dur) / NULLIF(SUM(SUM(w.dur)) OVER (), 0) AS time_frac,
    ROUND(FSUM(w.share), 6) AS op_calls,
    ROUND(FSUM(w.flops * w.share) FILTER (w.is_matrix)) AS flops,
    ROUND(FSUM(w.flops * w.share) FILTER (w.is_matrix) / NULLIF(SUM(w.dur), 0), 3) AS gflop_per_s
FROM worked AS w
CROSS JOIN chosen AS c
CROSS JOIN devices AS d
GROUP BY w.name, w.op, w.input_dims, w.input_type
ORDER BY total_dur DESC, w.name, w.op, w.input_dims, w.input_type

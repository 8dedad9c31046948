-- name kernel_times
-- description Device work by name: time per step and device, how long one takes, what launches it.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
-- param class VARCHAR NULL Only this class: gemm, attention, elementwise, collective, ...
-- param top BIGINT NULL Rows at most; all where NULL.
WITH
chosen AS (
    SELECT s.*
    FROM step_span($first_step, $last_step) AS s
),
worked AS (
    SELECT
        k.id,
        k.rank,
        COALESCE(k.device, 0) AS device,
        k.short_name,
        k.class,
        k.dur,
        -- Profilers write 0 where they do not know: work that runs is on some multiprocessor.
        NULLIF(k.est_occupancy_frac, 0) AS est_occupancy_frac,
        s.name AS op,
        o.input_dims
    FROM kernel AS k
    CROSS JOIN chosen AS c
    LEFT JOIN slice AS s ON s.id = k.op_id
    LEFT JOIN cpu_op AS o ON o.id = k.op_id
    WHERE k.ts >= c.ts AND k.ts < c.end_ts
        AND is_chosen($ranks, k.rank)
        AND ($class IS NULL OR k.class = $class)
),
devices AS (
    SELECT COUNT(DISTINCT (w.rank, w.device)) AS n
    FROM worked AS w
),
launched AS (
    SELECT
        w.short_name,
        w.op,
        w.input_dims,
        SUM(w.dur) AS dur
    FROM worked AS w
    GROUP BY w.short_name, w.op, w.input_dims
),
asked AS (
    SELECT
        l.short_name,
        ARG_MAX(l.op, (l.dur, l.op)) AS op,
        COUNT(DISTINCT l.op) AS ops,
        ARG_MAX(l.input_dims, (l.dur, l.input_dims)) AS input_dims,
        COUNT(DISTINCT l.input_dims) AS shapes
    FROM launched AS l
    GROUP BY l.short_name
)
SELECT
    w.short_name,
    ANY_VALUE(w.class) AS class,
    COUNT(*) AS instances,
    SUM(w.dur) / (ANY_VALUE(c.steps) * ANY_VALUE(d.n)) AS step_dur,
    SUM(w.dur)::BIGINT AS total_dur,
    SUM(w.dur) / NULLIF(SUM(SUM(w.dur)) OVER (), 0) AS time_frac,
    MEDIAN(w.dur) AS med_dur,
    QUANTILE_CONT(w.dur, 0.95) AS p95_dur,
    MAX(w.dur) AS max_dur,
    ROUND(
        FSUM(w.est_occupancy_frac * w.dur)
        / NULLIF(SUM(w.dur) FILTER (w.est_occupancy_frac IS NOT NULL), 0),
        6
    ) AS occupancy_frac,
    ANY_VALUE(a.op) AS op,
    ANY_VALUE(a.ops) AS ops,
    ANY_VALUE(a.input_dims) AS input_dims,
    ANY_VALUE(a.shapes) AS shapes
FROM worked AS w
CROSS JOIN chosen AS c
CROSS JOIN devices AS d
LEFT JOIN asked AS a ON a.short_name = w.short_name
GROUP BY w.short_name
ORDER BY total_dur DESC, w.short_name
LIMIT $top

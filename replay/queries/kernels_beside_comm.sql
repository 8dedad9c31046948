-- name kernels_beside_comm
-- description How much of each class of kernels runs while a collective does on the same device.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
chosen AS (
    SELECT s.*
    FROM step_span($first_step, $last_step) AS s
),
run AS (
    SELECT
        p.trace_id,
        p.device,
        p.ts,
        COALESCE(SUM(p.dur) FILTER (p.n_comm > 0) OVER before, 0) AS comm_dur
    FROM store.device_point AS p
    WINDOW before AS (
        PARTITION BY p.trace_id, p.device ORDER BY p.ts
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
worked AS (
    SELECT
        k.rank,
        COALESCE(k.device, 0) AS device,
        k.class,
        k.dur,
        b.comm_dur - a.comm_dur AS beside_dur
    FROM kernel AS k
    CROSS JOIN chosen AS c
    JOIN run AS a ON a.trace_id = k.trace_id AND a.device = COALESCE(k.device, 0) AND a.ts = k.ts
    JOIN run AS b
        ON b.trace_id = k.trace_id AND b.device = COALESCE(k.device, 0) AND b.ts = k.ts + k.dur
    WHERE k.class NOT IN ('collective', 'memcpy', 'memset') AND k.ts >= c.ts AND k.ts < c.end_ts
        AND is_chosen($ranks, k.rank)
),
devices AS (
    SELECT COUNT(DISTINCT (w.rank, w.device)) AS n
    FROM worked AS w
)
SELECT
    w.class,
    COUNT(*) AS instances,
    COUNT(*) FILTER (w.beside_dur > 0) AS beside_instances,
    SUM(w.dur) / (ANY_VALUE(c.steps) * ANY_VALUE(d.n)) AS step_dur,
    SUM(w.beside_dur) / (ANY_VALUE(c.steps) * ANY_VALUE(d.n)) AS step_beside_dur,
    SUM(w.beside_dur) / NULLIF(SUM(w.dur), 0) AS beside_frac
FROM worked AS w
CROSS JOIN chosen AS c
CROSS JOIN devices AS d
GROUP BY w.class
ORDER BY step_dur DESC, w.class

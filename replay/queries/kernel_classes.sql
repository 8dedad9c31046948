-- name kernel_classes
-- description Device work of each rank by phase of the step and class: time per step and device, and
--     how many.
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
        k.phase,
        k.class,
        k.dur
    FROM kernel AS k
    CROSS JOIN chosen AS c
    WHERE k.ts >= c.ts AND k.ts < c.end_ts
        AND is_chosen($ranks, k.rank)
),
devices AS (
    SELECT
        w.rank,
        COUNT(DISTINCT w.device) AS n
    FROM worked AS w
    GROUP BY w.rank
)
SELECT
    w.rank,
    w.phase,
    w.class,
    COUNT(*) AS instances,
    SUM(w.dur) / (ANY_VALUE(c.steps) * ANY_VALUE(d.n)) AS step_dur,
    SUM(w.dur)::BIGINT AS total_dur,
    SUM(w.dur) / NULLIF(SUM(SUM(w.dur)) OVER (PARTITION BY w.rank), 0) AS time_frac
FROM worked AS w
CROSS JOIN chosen AS c
JOIN devices AS d ON d.rank = w.rank
GROUP BY w.rank, w.phase, w.class
ORDER BY w.rank, total_dur DESC, w.phase, w.class

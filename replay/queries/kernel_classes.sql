-- name kernel_classes
-- description Device work of each rank by class: time per step and device, and how many.
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
        k.class,
        k.dur
    FROM kernel AS k
    CROSS JOIN chosen AS c
    WHERE k.ts >= c.ts AND k.ts < c.end_ts
        AND ($ranks IS NULL OR k.rank IN (SELECT UNNEST(STRING_SPLIT($ranks::VARCHAR, ','))::BIGINT))
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
    w.class,
    COUNT(*) AS instances,
    SUM(w.dur) / (ANY_VALUE(c.steps) * ANY_VALUE(d.n)) AS step_dur,
    SUM(w.dur)::BIGINT AS total_dur,
    SUM(w.dur) / NULLIF(SUM(SUM(w.dur)) OVER (PARTITION BY w.rank), 0) AS time_frac
FROM worked AS w
CROSS JOIN chosen AS c
JOIN devices AS d ON d.rank = w.rank
GROUP BY w.rank, w.class
ORDER BY w.rank, total_dur DESC, w.class

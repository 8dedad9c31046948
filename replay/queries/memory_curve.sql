-- name memory_curve
-- description Memory over the steps of the host (needs profile_memory), in stretches: the most that is
--     allocated and reserved in each, so that no peak is lost.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
-- param stretches BIGINT 240 How many of them.
WITH
hosts AS (
    SELECT h.*
    FROM host_span($ranks, $first_step, $last_step) AS h
),
whole AS (
    SELECT
        MIN(h.ts) AS ts,
        GREATEST((MAX(h.end_ts) - MIN(h.ts)) / $stretches, 1) AS stretch_dur
    FROM hosts AS h
),
held AS (
    SELECT
        e.rank,
        e.device_type,
        e.device,
        e.ts,
        e.bytes,
        e.op_id,
        e.total_allocated::BIGINT AS allocated_bytes,
        e.total_reserved::BIGINT AS reserved_bytes,
        SUM(e.bytes) OVER (
            PARTITION BY e.rank, e.device_type, e.device ORDER BY e.ts
            RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )::BIGINT AS rise_bytes
    FROM memory_event AS e
)
SELECT
    e.rank,
    CASE e.device_type WHEN 0 THEN 'CPU' ELSE 'device ' || COALESCE(e.device, 0) END AS place,
    FLOOR((e.ts - w.ts) / w.stretch_dur)::BIGINT AS stretch,
    ARG_MAX(
        e.ts - w.ts, (COALESCE(e.allocated_bytes, e.rise_bytes), -e.ts)
    )::BIGINT AS after_dur,
    MAX(e.allocated_bytes) AS allocated_bytes,
    NULLIF(MAX(e.reserved_bytes), 0) AS reserved_bytes,
    MAX(e.rise_bytes) AS rise_bytes
FROM held AS e
JOIN hosts AS h ON h.rank = e.rank AND e.ts >= h.ts AND e.ts < h.end_ts
CROSS JOIN whole AS w
GROUP BY e.rank, e.device_type, e.device, stretch
ORDER BY e.device_type = 0, e.rank, e.device, stretch

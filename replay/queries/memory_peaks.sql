-- name memory_peaks
-- description Memory of each device in the steps of the host (needs profile_memory): the most that is
--     allocated and reserved, when and by which operator, and what the card has. Where totals are
--     not recorded, how far allocations rise above the start of the recording.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
hosts AS (
    SELECT h.*
    FROM host_span($ranks, $first_step, $last_step) AS h
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
),
inside AS (
    SELECT
        e.*,
        h.ts AS from_ts
    FROM held AS e
    JOIN hosts AS h ON h.rank = e.rank AND e.ts >= h.ts AND e.ts < h.end_ts
),
peak AS (
    SELECT
        i.rank,
        i.device_type,
        i.device,
        MAX(i.allocated_bytes) AS peak_bytes,
        MIN(i.allocated_bytes) AS least_bytes,
        ARG_MAX(
            i.ts - i.from_ts, (COALESCE(i.allocated_bytes, i.rise_bytes), -i.ts)
        ) AS after_dur,
        ARG_MAX(
            COALESCE(i.op_id, -1), (COALESCE(i.allocated_bytes, i.rise_bytes), -i.ts)
        ) AS op_id,
        NULLIF(MAX(i.reserved_bytes), 0) AS reserved_bytes,
        NULLIF(MAX(i.reserved_bytes), 0) - MAX(i.allocated_bytes) AS unused_bytes,
        MAX(i.rise_bytes) AS rise_bytes,
        COUNT(*) FILTER (i.bytes > 0) AS allocations,
        COUNT(*) FILTER (i.bytes < 0) AS frees,
        COALESCE(SUM(i.bytes) FILTER (i.bytes > 0), 0)::BIGINT AS allocated_in_all_bytes
    FROM inside AS i
    GROUP BY i.rank, i.device_type, i.device
)
SELECT
    p.rank,
    CASE p.device_type WHEN 0 THEN 'CPU' ELSE 'device ' || COALESCE(p.device, 0) END AS place,
    p.device_type,
    p.device,
    p.peak_bytes,
    p.reserved_bytes,
    p.unused_bytes,
    CASE WHEN p.device_type <> 0 THEN d.total_mem_bytes END AS card_bytes,
    CASE WHEN p.device_type <> 0 THEN d.total_mem_bytes END - p.reserved_bytes AS headroom_bytes,
    p.least_bytes,
    p.rise_bytes,
    p.after_dur,
    s.name AS op,
    p.allocations,
    p.frees,
    p.allocated_in_all_bytes
FROM peak AS p
LEFT JOIN trace AS t ON t.rank = p.rank
LEFT JOIN device AS d ON d.trace_id = t.trace_id AND d.device = p.device
LEFT JOIN slice AS s ON s.id = p.op_id
ORDER BY p.device_type = 0, p.rank, p.device

-- name memory_at_peak
-- description What is held when most memory is allocated on a device (needs profile_memory): by the
--     operator and phase that allocated it, and what was there before the recording.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
hosts AS (
    SELECT h.*
    FROM host_span($ranks, $first_step, $last_step) AS h
),
device_event AS (
    SELECT
        ROW_NUMBER() OVER (ORDER BY e.ts, e.place) AS number,
        e.*
    FROM (
        SELECT
            ROW_NUMBER() OVER () AS place,
            m.*
        FROM memory_event AS m
    ) AS e
    WHERE e.device_type <> 0 AND e.addr IS NOT NULL AND e.total_allocated IS NOT NULL
),
peak AS (
    SELECT
        e.rank,
        e.device,
        MAX(e.total_allocated)::BIGINT AS peak_bytes,
        MAX_BY(e.number, (e.total_allocated, -e.number)) AS number
    FROM device_event AS e
    JOIN hosts AS h ON h.rank = e.rank AND e.ts >= h.ts AND e.ts < h.end_ts
    GROUP BY e.rank, e.device
),
worst AS (
    SELECT p.*
    FROM peak AS p
    ORDER BY p.peak_bytes DESC, p.rank, p.device
    LIMIT 1
),
live AS (
    SELECT
        MAX_BY(e.bytes, e.number) AS bytes,
        MAX_BY(COALESCE(e.op_id, -1), e.number) AS op_id
    FROM device_event AS e
    JOIN worst AS w ON w.rank = e.rank AND w.device = e.device AND e.number <= w.number
    GROUP BY e.addr
),
named AS (
    SELECT
        COALESCE(s.name, '(no operator)') AS op,
        o.phase,
        COUNT(*) AS blocks,
        SUM(l.bytes)::BIGINT AS bytes,
        MAX(l.bytes) AS largest_bytes
    FROM live AS l
    LEFT JOIN slice AS s ON s.id = l.op_id
    LEFT JOIN cpu_op AS o ON o.id = l.op_id
    WHERE l.bytes > 0
    GROUP BY s.name, o.phase
)
SELECT
    w.rank,
    w.device,
    n.op,
    n.phase,
    n.blocks,
    n.bytes,
    n.bytes / w.peak_bytes AS peak_frac,
    n.largest_bytes
FROM named AS n
CROSS JOIN worst AS w
UNION ALL
SELECT
    w.rank,
    w.device,
    '(held before the recording)',
    NULL,
    NULL,
    w.peak_bytes - (SELECT COALESCE(SUM(n.bytes), 0) FROM named AS n),
    1 - (SELECT COALESCE(SUM(n.bytes), 0) FROM named AS n) / w.peak_bytes,
    NULL
FROM worst AS w
ORDER BY bytes DESC, op

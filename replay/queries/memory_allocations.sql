-- name memory_allocations
-- description Largest allocations on devices in the steps of the host (needs profile_memory), by
--     operator and size.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
hosts AS (
    SELECT h.*
    FROM host_span($ranks, $first_step, $last_step) AS h
)
SELECT
    COALESCE(s.name, '(no operator)') AS op,
    o.phase,
    e.bytes,
    COUNT(*) AS allocations,
    SUM(e.bytes)::BIGINT AS total_bytes,
    LIST_SORT(LIST(DISTINCT e.rank)) AS ranks,
    MODE(m.name ORDER BY m.name) AS module
FROM memory_event AS e
JOIN hosts AS h ON h.rank = e.rank AND e.ts >= h.ts AND e.ts < h.end_ts
LEFT JOIN slice AS s ON s.id = e.op_id
LEFT JOIN cpu_op AS o ON o.id = e.op_id
LEFT JOIN slice AS m ON m.id = o.module_id AND m.name NOT LIKE 'ProfilerStep%'
WHERE e.bytes > 0 AND e.device_type <> 0
GROUP BY s.name, o.phase, e.bytes
ORDER BY e.bytes DESC, allocations DESC, op

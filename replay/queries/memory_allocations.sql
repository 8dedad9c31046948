-- name memory_allocations
-- description Largest allocations on devices in the steps of the host (needs profile_memory), by
--     operator and size.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL Only from this step on.
-- param last_step BIGINT NULL Only up to this step.
WITH
hosts AS (
    SELECT
        t.rank,
        MIN(COALESCE(p.ts, w.ts)) AS ts,
        MAX(COALESCE(p.ts + p.dur, w.ts + w.dur)) AS end_ts,
        COUNT(DISTINCT w.step) AS steps
    FROM step_window AS w
    CROSS JOIN trace AS t
    LEFT JOIN step AS p
        ON p.trace_id = t.trace_id AND p.step = w.step AND p.source = 'ProfilerStep'
    WHERE ($first_step IS NULL OR w.step >= $first_step)
        AND ($last_step IS NULL OR w.step <= $last_step)
        AND ($ranks IS NULL OR t.rank IN (SELECT UNNEST(STRING_SPLIT($ranks::VARCHAR, ','))::BIGINT))
    GROUP BY t.rank
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

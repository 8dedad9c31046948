-- All device work, by stream and time.
SELECT
    k.id AS slice_id,
    k.trace_id AS trace_id,
    COALESCE(k.device, 0) AS device,
    COALESCE(k.stream, -1) AS stream,
    k.ts AS ts_ns,
    k.ts + k.dur AS end_ns,
    k.name_id AS name_id,
    COALESCE(k.class, 0) AS class,
    COALESCE(k.phase, 0) AS phase,
    COALESCE(k.runtime_id, -1) AS runtime_id,
    COALESCE(o.name_id, -1) AS op_name_id,
    COALESCE(m.name_id, -1) AS module_name_id,
    CASE
        WHEN k.grid IS NULL AND c.input_dims IS NULL THEN -1
        ELSE (HASH(k.grid, k.block, c.input_dims) >> 1)::BIGINT
    END AS geometry
FROM store.kernel AS k
LEFT JOIN store.slice AS o ON o.id = k.op_id
LEFT JOIN store.cpu_op AS c ON c.id = k.op_id
LEFT JOIN store.slice AS m ON m.id = k.module_id
WHERE k.trace_id IN (SELECT UNNEST($trace_ids))
ORDER BY k.trace_id, device, stream, k.ts, k.ts + k.dur, k.id;

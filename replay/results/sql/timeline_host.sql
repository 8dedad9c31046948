-- Rows of host threads with a time, Python frames among them; device work is drawn from its tasks.
SELECT
    s.id AS slice_id,
    s.trace_id AS trace_id,
    COALESCE(s.utid, -1) AS utid,
    s.ts AS ts_ns,
    s.ts + COALESCE(s.dur, 0) AS end_ns,
    COALESCE(s.depth, 0) AS depth,
    s.name_id AS name_id,
    s.cat AS cat,
    COALESCE(s.correlation, 0)::BIGINT AS correlation,
    COALESCE(s.external_id, 0)::BIGINT AS external_id
FROM store.slice AS s
LEFT JOIN store.kernel AS k ON k.id = s.id
WHERE
    s.trace_id IN (SELECT UNNEST($trace_ids)) AND s.ts IS NOT NULL AND k.id IS NULL
    AND s.cat NOT IN ('gpu_user_annotation', 'cuda_sync')
ORDER BY s.id;

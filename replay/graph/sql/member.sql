-- Members of collectives, one row per device row (or worker-thread row on hosts without device).
SELECT
    r.kernel_id AS slice_id,
    s.trace_id AS trace_id,
    COALESCE(r.op_id, -1) AS op_id,
    r.coll_id AS coll_id,
    s.ts AS ts_ns,
    s.ts + s.dur AS end_ns,
    COALESCE(r.transfer_dur, s.dur) AS transfer_ns,
    r.waits_for IS NULL AS waits_for_all
FROM store.collective_rank AS r
JOIN store.slice AS s ON s.id = r.kernel_id
WHERE s.trace_id IN (SELECT UNNEST($trace_ids))
ORDER BY r.kernel_id;

-- Rows that may be host rows; Python frames only nest. What else they are, call.sql and op.sql say:
-- joined there by id, since a join here takes three times as long.
SELECT
    s.id AS slice_id,
    s.trace_id AS trace_id,
    COALESCE(s.utid, -1) AS utid,
    s.ts AS ts_ns,
    s.ts + s.dur AS end_ns,
    s.name_id AS name_id,
    CASE s.cat WHEN 'cpu_op' THEN 0 WHEN 'user_annotation' THEN 1 ELSE 2 END AS category,
    COALESCE(s.correlation, 0)::BIGINT AS correlation
FROM store.slice AS s
WHERE s.trace_id IN (SELECT UNNEST($trace_ids)) AND s.cat <> 'python_function';

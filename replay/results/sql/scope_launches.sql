-- Device rows of the chosen files and the host call that launched each.
SELECT k.id AS slice_id, COALESCE(k.runtime_id, k.op_id, -1) AS call_id
FROM store.kernel AS k
WHERE k.trace_id IN (SELECT UNNEST($trace_ids))
ORDER BY k.id;

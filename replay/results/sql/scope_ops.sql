-- Operators with their autograd numbers and the number of their inputs in scope_shapes.sql.
SELECT
    o.id AS slice_id,
    COALESCE(o.sequence_number, -1) AS seq,
    COALESCE(o.fwd_thread_id, 0) AS forward_thread,
    CASE
        WHEN COALESCE(o.input_dims, '') IN ('', '[]') THEN -1
        ELSE
            DENSE_RANK() OVER (
                PARTITION BY COALESCE(o.input_dims, '') IN ('', '[]')
                ORDER BY s.name_id, o.input_dims
            ) - 1
    END AS shape
FROM store.cpu_op AS o
JOIN store.slice AS s ON s.id = o.id
WHERE s.trace_id IN (SELECT UNNEST($trace_ids))
ORDER BY o.id;

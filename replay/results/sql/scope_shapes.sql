-- Operators with inputs, each distinct call once; `slice_id` is the first of them.
SELECT
    n.name AS name,
    o.input_dims AS dims,
    MIN(o.id) AS slice_id
FROM store.cpu_op AS o
JOIN store.slice AS s ON s.id = o.id
JOIN store.name AS n ON n.name_id = s.name_id
WHERE
    s.trace_id IN (SELECT UNNEST($trace_ids))
    AND COALESCE(o.input_dims, '') NOT IN ('', '[]')
GROUP BY s.name_id, n.name, o.input_dims
ORDER BY s.name_id, o.input_dims;

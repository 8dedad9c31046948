-- Operators of one name with the shape and element type of their inputs, where recorded.
SELECT
    s.id AS slice_id,
    COALESCE(o.input_dims, '') AS dims,
    COALESCE(o.input_type, '') AS types
FROM store.slice AS s
JOIN store.cpu_op AS o ON o.id = s.id
WHERE s.name_id = $name_id
ORDER BY s.id;

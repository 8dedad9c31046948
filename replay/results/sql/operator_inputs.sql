-- Name and inputs of operators.
SELECT
    o.id AS op_id,
    COALESCE(n.name, '') AS name,
    COALESCE(o.input_dims, '') AS dims,
    COALESCE(o.input_type, '') AS types
FROM store.cpu_op AS o
JOIN store.slice AS s ON s.id = o.id
JOIN store.name AS n ON n.name_id = s.name_id
WHERE o.id IN (SELECT UNNEST($op_ids))
ORDER BY o.id;

-- Long operators and the shapes that they were given.
SELECT o.id AS slice_id, o.input_dims AS dims
FROM store.cpu_op AS o
JOIN store.slice AS s ON s.id = o.id
WHERE o.input_dims IS NOT NULL AND s.dur >= $least_ns;

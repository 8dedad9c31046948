-- The public tables of a store with their meaning.
SELECT view_name AS name, column_count AS columns, comment
FROM duckdb_views() WHERE schema_name = 'main' AND NOT internal ORDER BY name

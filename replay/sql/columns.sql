-- Columns of the table $1: name, type, meaning.
SELECT column_name AS name, data_type AS type, comment
FROM duckdb_columns() WHERE schema_name = 'main' AND table_name = $1 ORDER BY column_index

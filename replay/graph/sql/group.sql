-- Communicators by key; the members as text "0,1,2".
SELECT
    g.pg_key::VARCHAR AS group_key,
    MIN(g.pg_name) AS name,
    ANY_VALUE(ARRAY_TO_STRING(g.ranks, ',')) AS ranks,
    MAX(COALESCE(g.pg_size, 0)) AS size,
    COALESCE(ANY_VALUE(g.backend_config), '') AS backend,
    COALESCE(MIN(g.pg_desc), '') AS description
FROM store.process_group AS g
WHERE g.pg_key IS NOT NULL
GROUP BY g.pg_key;

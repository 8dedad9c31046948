-- name store_versions
-- description What the store says of itself: its format and the version of its schema.
SELECT
    m.key,
    m.value
FROM meta AS m
ORDER BY m.key

-- name recorded_versions
-- description Versions and profiler settings that the files state, and how many files say the same.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
WITH
document AS (
    SELECT
        t.rank,
        t.metadata::JSON AS fields,
        (t.metadata::JSON -> 'distributedInfo') AS job
    FROM trace AS t
    WHERE t.metadata IS NOT NULL
        AND is_chosen($ranks, t.rank)
),
field AS (
    SELECT
        d.rank,
        UNNEST(JSON_KEYS(d.fields)) AS name,
        d.fields
    FROM document AS d
    UNION ALL
    SELECT
        d.rank,
        UNNEST(JSON_KEYS(d.job)),
        d.job
    FROM document AS d
    WHERE JSON_TYPE(d.job) = 'OBJECT'
)
SELECT
    f.name,
    f.fields ->> f.name AS value,
    COUNT(*) AS files
FROM field AS f
WHERE JSON_TYPE(f.fields -> f.name) NOT IN ('OBJECT', 'ARRAY', 'NULL')
    AND (
        f.name ILIKE '%version%'
        OR f.name IN ('record_shapes', 'with_stack', 'with_modules', 'with_flops', 'profile_memory')
    )
GROUP BY f.name, value
ORDER BY f.name, files DESC, value

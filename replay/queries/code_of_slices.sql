-- name code_of_slices
-- description The code around slices: innermost operator, nn.Module and Python function, one that
--     is not PyTorch's own where there is one (of device work, around its launching call); NULL
--     where none is recorded.
-- param ids VARCHAR NULL Slices, as in 17,35; the longest on the critical path where NULL.
WITH RECURSIVE
chosen AS (
    SELECT TRY_CAST(UNNEST(STRING_SPLIT($ids, ',')) AS BIGINT) AS id
    UNION
    (
        SELECT p.slice_id
        FROM critical_path AS p
        WHERE $ids IS NULL AND p.scenario_id = 0 AND p.slice_id IS NOT NULL
        ORDER BY p.total_dur DESC, p.position
        LIMIT 10
    )
),
wanted AS (
    SELECT
        s.id,
        COALESCE(k.runtime_id, s.id) AS host_id
    FROM slice AS s
    LEFT JOIN kernel AS k ON k.id = s.id
    WHERE s.id IN (SELECT c.id FROM chosen AS c)
),
around AS (
    SELECT
        w.id,
        s.id AS at_id,
        s.parent_id,
        0 AS up
    FROM wanted AS w
    JOIN slice AS s ON s.id = w.host_id
    UNION ALL
    SELECT
        a.id,
        p.id,
        p.parent_id,
        a.up + 1
    FROM around AS a
    JOIN slice AS p ON p.id = a.parent_id
)
SELECT
    a.id,
    ARG_MIN(s.name, a.up) FILTER (s.cat = 'cpu_op') AS op,
    ARG_MIN(s.name, a.up) FILTER (s.cat = 'python_function' AND s.name LIKE 'nn.Module:%') AS module,
    COALESCE(
        ARG_MIN(s.name, a.up) FILTER (
            s.cat = 'python_function' AND s.name NOT LIKE 'torch/%' AND s.name NOT LIKE '%/torch/%'
            AND s.name LIKE '%.py(%'
        ),
        ARG_MIN(s.name, a.up) FILTER (s.cat = 'python_function' AND s.name LIKE '%.py(%')
    ) AS frame
FROM around AS a
JOIN slice AS s ON s.id = a.at_id
GROUP BY a.id
ORDER BY a.id

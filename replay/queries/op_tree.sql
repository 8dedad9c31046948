-- name op_tree
-- description What runs inside one slice of the host, as a tree with times and launched device work.
-- param id BIGINT NULL Slice at the top; where NULL the operator that takes longest.
-- param depth BIGINT 4 Levels below it.
WITH RECURSIVE tree AS (
    SELECT
        s.id,
        0 AS level,
        [s.ts, s.id] AS place
    FROM slice AS s
    WHERE s.id = COALESCE(
        $id,
        (SELECT o.id FROM slice AS o WHERE o.cat = 'cpu_op' ORDER BY o.dur DESC, o.id LIMIT 1)
    )
    UNION ALL
    SELECT
        s.id,
        t.level + 1,
        LIST_CONCAT(t.place, [s.ts, s.id])
    FROM tree AS t
    JOIN slice AS s ON s.parent_id = t.id
    WHERE t.level < $depth
),

launched AS (
    SELECT
        k.runtime_id,
        SUM(k.dur) AS device_dur,
        ANY_VALUE(k.short_name) AS kernel
    FROM kernel AS k
    GROUP BY k.runtime_id
)
SELECT
    s.id,
    t.level,
    REPEAT('| ', t.level) || s.name AS name,
    s.cat,
    s.dur / 1e3 AS total_us,
    s.self_dur / 1e3 AS self_us,
    l.device_dur / 1e3 AS device_us,
    l.kernel
FROM tree AS t
JOIN slice AS s ON s.id = t.id
LEFT JOIN launched AS l ON l.runtime_id = s.id
ORDER BY t.place

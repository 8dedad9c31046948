-- name slower_work
-- description What one rank spends more time on than the others do, per step: kernels by their own
--     time, operators, calls and annotations by the time that is theirs alone (calls that wait for a device
--     left out); against the median of the other ranks. Hashes and addresses in names differ by rank
--     and count as equal. What no other rank has is no excess: more_ns is NULL.
-- param late_rank BIGINT NULL The rank to look at; where NULL the one that costs the others most.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
-- param top BIGINT 20 Rows at most.
WITH
span AS (
    SELECT
        w.step,
        w.is_recorded,
        COUNT(*) OVER () AS steps
    FROM step_window AS w
    WHERE NOT w.is_recorded
        OR w.step BETWEEN COALESCE($first_step, w.step) AND COALESCE($last_step, w.step)
),
chosen AS (
    SELECT DISTINCT t.rank
    FROM trace AS t
    WHERE is_chosen($ranks, t.rank)
),
late AS (
    SELECT COALESCE(
        $late_rank,
        (SELECT s.rank FROM straggler AS s ORDER BY s.caused_wait_dur DESC, s.rank LIMIT 1),
        (SELECT MIN(c.rank) FROM chosen AS c)
    ) AS rank
),
waiting AS (
    SELECT r.id
    FROM runtime AS r
    WHERE r.kind IN ('device_sync', 'stream_sync', 'event_sync')
),
work AS (
    SELECT
        'device' AS place,
        k.name,
        k.rank,
        k.dur,
        s.steps
    FROM kernel AS k
    JOIN span AS s ON k.step = s.step OR NOT s.is_recorded
    WHERE k.class <> 'collective'
    UNION ALL
    SELECT 'host', o.name, o.rank, o.self_dur, s.steps
    FROM slice AS o
    JOIN span AS s ON o.step = s.step OR NOT s.is_recorded
    WHERE (
            o.cat IN ('cpu_op', 'user_annotation', 'cuda_runtime', 'cuda_driver', 'python_function')
            OR o.id IN (SELECT r.id FROM runtime AS r)
        )
        AND o.id NOT IN (SELECT w.id FROM waiting AS w)
        AND o.id NOT IN (SELECT m.kernel_id FROM collective_rank AS m)
        AND o.name NOT LIKE 'ProfilerStep#%'
),
-- Compiled graphs (base 32), hashes and addresses: another on each rank for the same work.
named AS (
    SELECT
        w.place,
        REGEXP_REPLACE(w.name, '\b([a-z2-7]{40,}|[0-9a-f]{32,}|0x[0-9a-f]+)\b', '*', 'g') AS name,
        w.rank,
        w.dur,
        w.steps
    FROM work AS w
),
summed AS (
    SELECT
        w.place,
        w.name,
        w.rank,
        COUNT(*) / ANY_VALUE(w.steps) AS calls,
        SUM(w.dur) / ANY_VALUE(w.steps) AS dur
    FROM named AS w
    JOIN chosen AS c ON c.rank = w.rank
    GROUP BY w.place, w.name, w.rank
),
usual AS (
    SELECT
        a.place,
        a.name,
        COUNT(m.dur) AS ranks,
        MEDIAN(COALESCE(m.dur, 0)) AS dur,
        MEDIAN(COALESCE(m.calls, 0)) AS calls
    FROM (SELECT DISTINCT w.place, w.name FROM summed AS w) AS a
    CROSS JOIN chosen AS c
    LEFT JOIN summed AS m ON m.place = a.place AND m.name = a.name AND m.rank = c.rank
    WHERE c.rank <> (SELECT l.rank FROM late AS l)
    GROUP BY a.place, a.name
)
SELECT
    m.rank,
    m.place,
    m.name,
    m.calls AS calls_per_step,
    m.dur AS own_ns,
    u.calls AS usual_calls_per_step,
    u.dur AS usual_ns,
    u.ranks AS other_ranks,
    CASE WHEN u.ranks > 0 THEN m.dur - u.dur END AS more_ns
FROM summed AS m
JOIN late AS l ON l.rank = m.rank
JOIN usual AS u ON u.place = m.place AND u.name = m.name
WHERE m.dur > u.dur
ORDER BY m.dur - u.dur DESC, m.place, m.name
LIMIT $top

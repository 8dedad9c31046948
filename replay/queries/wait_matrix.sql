-- name wait_matrix
-- description Which rank waited for which at the collectives of the steps, by process group: how long,
--     and how much of that nothing of the waiting rank hides (devices only), per step.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
span AS (
    SELECT s.*
    FROM step_span($first_step, $last_step) AS s
),
exposure AS (
    SELECT
        e.kernel_id,
        SUM(e.exposed_wait_dur) AS exposed_wait_dur
    FROM collective_exposure AS e
    JOIN step_window AS w ON w.step = e.step
    WHERE NOT w.is_recorded
        OR w.step BETWEEN COALESCE($first_step, w.step) AND COALESCE($last_step, w.step)
    GROUP BY e.kernel_id
)
SELECT
    c.pg_key,
    g.pg_name AS name,
    g.pg_desc AS description,
    m.rank,
    m.late_rank,
    k.is_resolvable,
    COUNT(*) AS waits,
    SUM(m.wait_dur) / ANY_VALUE(s.steps) AS wait_ns,
    SUM(IF(c.on_host, NULL, LEAST(m.wait_dur, COALESCE(e.exposed_wait_dur, 0)))) / ANY_VALUE(s.steps) AS exposed_ns
FROM collective_wait AS m
JOIN collective AS c ON c.coll_id = m.coll_id
JOIN collective_skew AS k ON k.coll_id = m.coll_id
JOIN collective_rank AS r ON r.kernel_id = m.kernel_id AND r.coll_id = m.coll_id
JOIN span AS s ON r.ts < s.end_ts AND r.ts + r.dur > s.ts
LEFT JOIN store.communicator AS g ON g.pg_key = c.pg_key
LEFT JOIN exposure AS e ON e.kernel_id = m.kernel_id
WHERE is_chosen($ranks, m.rank) AND is_chosen($ranks, m.late_rank)
GROUP BY c.pg_key, g.pg_name, g.pg_desc, m.rank, m.late_rank, k.is_resolvable
ORDER BY exposed_ns DESC NULLS LAST, wait_ns DESC, c.pg_key, m.rank, m.late_rank

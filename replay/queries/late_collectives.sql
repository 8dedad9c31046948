-- name late_collectives
-- description Collectives of the steps at which others waited most for a late member: which rank was late,
--     how far first and last were apart, what the others waited, and how much of that nothing of theirs
--     hides (devices only); sums over the members that waited.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
-- param top BIGINT 10 Rows at most.
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
    c.coll_id,
    c.kind,
    c.pg_key,
    g.pg_name AS name,
    g.pg_desc AS description,
    c.n_expected AS members,
    c.msg_bytes AS bytes,
    k.step,
    w.late_rank,
    w.late_kernel_id,
    k.skew_dur AS skew_ns,
    k.is_resolvable,
    COUNT(*) AS waiting,
    SUM(w.wait_dur)::BIGINT AS wait_ns,
    SUM(IF(c.on_host, NULL, LEAST(w.wait_dur, COALESCE(e.exposed_wait_dur, 0))))::BIGINT AS exposed_ns
FROM collective_wait AS w
JOIN collective AS c ON c.coll_id = w.coll_id
JOIN collective_skew AS k ON k.coll_id = w.coll_id
JOIN span AS s ON c.first_arrival < s.end_ts AND c.end_ts > s.ts
LEFT JOIN store.communicator AS g ON g.pg_key = c.pg_key
LEFT JOIN exposure AS e ON e.kernel_id = w.kernel_id
WHERE is_chosen($ranks, w.rank) AND is_chosen($ranks, w.late_rank)
GROUP BY ALL
ORDER BY exposed_ns DESC NULLS LAST, wait_ns DESC, c.coll_id, w.late_rank
LIMIT $top

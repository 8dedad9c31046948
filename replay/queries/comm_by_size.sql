-- name comm_by_size
-- description Communication in the steps by kind, process group, type and size: how often, how fast,
--     transfer without waiting, waiting, and what nothing hides, per step and rank.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
span AS (
    SELECT s.*
    FROM step_span($first_step, $last_step) AS s
),
chosen AS (
    SELECT DISTINCT t.rank
    FROM trace AS t
    WHERE is_chosen($ranks, t.rank)
),
device AS (
    SELECT
        k.rank,
        COUNT(DISTINCT COALESCE(k.device, 0)) AS devices
    FROM kernel AS k
    GROUP BY k.rank
),
share AS (
    SELECT
        c.rank,
        1.0 / (COUNT(*) OVER () * s.steps) AS rank_share,
        1.0 / (COUNT(*) OVER () * s.steps * COALESCE(d.devices, 1)) AS device_share
    FROM chosen AS c
    CROSS JOIN span AS s
    LEFT JOIN device AS d ON d.rank = c.rank
),
member AS (
    SELECT
        m.kernel_id,
        m.coll_id,
        m.transfer_dur * h.rank_share AS transfer_dur,
        m.wait_dur * h.rank_share AS wait_dur
    FROM collective_rank AS m
    JOIN share AS h ON h.rank = m.rank
    JOIN span AS s ON m.ts < s.end_ts AND m.ts + m.dur > s.ts
    QUALIFY ROW_NUMBER() OVER (PARTITION BY m.kernel_id ORDER BY m.coll_id) = 1
),
exposure AS (
    SELECT
        e.kernel_id,
        SUM(e.hidden_dur * h.device_share) AS hidden_dur,
        SUM(e.exposed_dur * h.device_share) AS exposed_dur
    FROM collective_exposure AS e
    JOIN share AS h ON h.rank = e.rank
    JOIN step_window AS w ON w.step = e.step
    WHERE NOT w.is_recorded
        OR w.step BETWEEN COALESCE($first_step, w.step) AND COALESCE($last_step, w.step)
    GROUP BY e.kernel_id
),
operation AS (
    SELECT
        m.coll_id,
        SUM(m.transfer_dur) AS transfer_dur,
        SUM(m.wait_dur) AS wait_dur,
        SUM(e.hidden_dur) AS hidden_dur,
        SUM(e.exposed_dur) AS exposed_dur
    FROM member AS m
    LEFT JOIN exposure AS e ON e.kernel_id = m.kernel_id
    GROUP BY m.coll_id
)
SELECT
    c.kind,
    c.pg_key,
    g.pg_name AS name,
    g.pg_desc AS description,
    c.n_expected AS members,
    c.dtype,
    c.msg_bytes AS bytes,
    COUNT(*) AS operations,
    COUNT(*) / ANY_VALUE(s.steps) AS operations_per_step,
    MEDIAN(c.transfer_dur) AS transfer_p50_ns,
    MEDIAN(IF(c.transfer_dur > 0, c.busbw, NULL)) * 1e9 AS busbw_p50_bytes_per_s,
    QUANTILE_CONT(IF(c.transfer_dur > 0, c.busbw, NULL), 0.95) * 1e9 AS busbw_p95_bytes_per_s,
    MAX(IF(c.transfer_dur > 0, c.busbw, NULL)) * 1e9 AS busbw_best_bytes_per_s,
    SUM(o.transfer_dur) AS transfer_ns,
    SUM(o.wait_dur) AS wait_ns,
    SUM(o.hidden_dur) AS hidden_ns,
    SUM(o.exposed_dur) AS exposed_ns
FROM operation AS o
JOIN collective AS c ON c.coll_id = o.coll_id
CROSS JOIN span AS s
LEFT JOIN store.communicator AS g ON g.pg_key = c.pg_key
GROUP BY c.kind, c.pg_key, g.pg_name, g.pg_desc, c.n_expected, c.dtype, c.msg_bytes
ORDER BY exposed_ns DESC NULLS LAST, transfer_ns DESC, c.kind, c.pg_key, c.msg_bytes

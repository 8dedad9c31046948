-- name comm_by_group
-- description Communication of each process group in the steps, per step and rank: what it moves,
--     how fast, how much of it nothing hides. Hidden and exposed time of all groups add up to the
--     communication of the steps; it is told of devices only (NULL where groups run on hosts).
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
        m.wait_dur * h.rank_share AS wait_dur,
        m.outside_wait_dur * h.rank_share AS outside_wait_dur
    FROM collective_rank AS m
    JOIN share AS h ON h.rank = m.rank
    JOIN span AS s ON m.ts < s.end_ts AND m.ts + m.dur > s.ts
    QUALIFY ROW_NUMBER() OVER (PARTITION BY m.kernel_id ORDER BY m.coll_id) = 1
),
exposure AS (
    SELECT
        e.kernel_id,
        SUM(e.comm_dur * h.device_share) AS comm_dur,
        SUM(e.hidden_dur * h.device_share) AS hidden_dur,
        SUM(e.exposed_dur * h.device_share) AS exposed_dur,
        SUM(e.exposed_wait_dur * h.device_share) AS exposed_wait_dur
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
        SUM(m.outside_wait_dur) AS outside_wait_dur,
        SUM(e.comm_dur) AS comm_dur,
        SUM(e.hidden_dur) AS hidden_dur,
        SUM(e.exposed_dur) AS exposed_dur,
        SUM(e.exposed_wait_dur) AS exposed_wait_dur,
        COUNT(*) AS members
    FROM member AS m
    LEFT JOIN exposure AS e ON e.kernel_id = m.kernel_id
    GROUP BY m.coll_id
),
equal AS (
    SELECT
        o.*,
        c.pg_key,
        IF(c.pg_key IS NULL, c.n_expected, NULL) AS lone_size,
        c.n_expected,
        c.msg_bytes,
        c.on_host,
        IF(c.transfer_dur > 0, c.busbw, NULL) AS busbw,
        c.transfer_dur AS one_transfer_dur,
        IF(
            COUNT(c.msg_bytes) OVER alike >= 3,
            o.transfer_dur - o.transfer_dur * MIN(c.transfer_dur) OVER alike / NULLIF(c.transfer_dur, 0),
            NULL
        ) AS above_best_dur
    FROM operation AS o
    JOIN collective AS c ON c.coll_id = o.coll_id
    WINDOW alike AS (PARTITION BY c.pg_key, c.n_expected, c.kind, c.dtype, c.msg_bytes)
)
SELECT
    e.pg_key,
    g.pg_name AS name,
    g.pg_desc AS description,
    GREATEST(MAX(e.n_expected), COALESCE(g.pg_size, 0)) AS members,
    g.ranks AS member_ranks,
    BOOL_OR(e.on_host) AS on_host,
    COUNT(*) AS operations,
    COUNT(*) / ANY_VALUE(s.steps) AS operations_per_step,
    SUM(e.msg_bytes) / ANY_VALUE(s.steps) AS bytes_per_step,
    COUNT(*) FILTER (e.msg_bytes IS NULL) AS without_size,
    SUM(e.busbw * e.one_transfer_dur) / NULLIF(SUM(e.one_transfer_dur) FILTER (e.busbw IS NOT NULL), 0)
        * 1e9 AS busbw_bytes_per_s,
    MEDIAN(e.busbw) * 1e9 AS busbw_p50_bytes_per_s,
    QUANTILE_CONT(e.busbw, 0.95) * 1e9 AS busbw_p95_bytes_per_s,
    MAX(e.busbw) * 1e9 AS busbw_best_bytes_per_s,
    SUM(e.transfer_dur) AS transfer_ns,
    SUM(e.wait_dur) AS wait_ns,
    SUM(e.outside_wait_dur) AS outside_wait_ns,
    SUM(e.above_best_dur) AS above_best_ns,
    SUM(e.comm_dur) AS comm_ns,
    SUM(e.hidden_dur) AS hidden_ns,
    SUM(e.exposed_dur) AS exposed_ns,
    SUM(e.exposed_wait_dur) AS exposed_wait_ns
FROM equal AS e
CROSS JOIN span AS s
LEFT JOIN store.communicator AS g ON g.pg_key = e.pg_key
GROUP BY e.pg_key, g.pg_name, g.pg_desc, g.pg_size, e.lone_size, g.ranks
ORDER BY exposed_ns DESC NULLS LAST, transfer_ns DESC, e.pg_key

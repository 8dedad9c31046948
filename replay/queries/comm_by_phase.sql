-- name comm_by_phase
-- description Communication of the devices in each phase of a step, per step and rank, and how much of
--     it compute hides. Adds up to the communication of the steps.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
span AS (
    SELECT
        COUNT(*) AS steps
    FROM step_window AS w
    WHERE NOT w.is_recorded
        OR w.step BETWEEN COALESCE($first_step, w.step) AND COALESCE($last_step, w.step)
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
        1.0 / (COUNT(*) OVER () * s.steps * COALESCE(d.devices, 1)) AS device_share
    FROM chosen AS c
    CROSS JOIN span AS s
    LEFT JOIN device AS d ON d.rank = c.rank
),
device_time AS (
    SELECT
        COALESCE(k.phase, 'unknown') AS phase,
        e.kernel_id,
        e.comm_dur * h.device_share AS comm_dur,
        e.hidden_dur * h.device_share AS hidden_dur,
        e.exposed_dur * h.device_share AS exposed_dur,
        e.exposed_wait_dur * h.device_share AS exposed_wait_dur
    FROM collective_exposure AS e
    JOIN kernel AS k ON k.id = e.kernel_id
    JOIN share AS h ON h.rank = e.rank
    JOIN step_window AS w ON w.step = e.step
    WHERE NOT w.is_recorded
        OR w.step BETWEEN COALESCE($first_step, w.step) AND COALESCE($last_step, w.step)
)
SELECT
    d.phase,
    COUNT(DISTINCT d.kernel_id) AS kernels,
    SUM(d.comm_dur) AS comm_ns,
    SUM(d.hidden_dur) AS hidden_ns,
    SUM(d.exposed_dur) AS exposed_ns,
    SUM(d.exposed_wait_dur) AS exposed_wait_ns,
    SUM(d.hidden_dur) / NULLIF(SUM(d.comm_dur), 0) AS hidden_frac
FROM device_time AS d
GROUP BY d.phase
ORDER BY exposed_ns DESC, d.phase

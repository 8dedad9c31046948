-- name idle_causes
-- description Why the devices do nothing: idle time inside the steps by what the next work waited
--     for, in the mean of devices and steps.
-- param rank BIGINT NULL Only this rank; all where NULL.
WITH
devices AS (
    SELECT
        t.rank,
        t.device
    FROM task AS t
    WHERE t.stream IS NOT NULL AND ($rank IS NULL OR t.rank = $rank)
    GROUP BY t.rank, t.device
),
steps AS (
    SELECT
        COUNT(DISTINCT p.step) AS n
    FROM critical_path AS p
    WHERE p.scenario_id = 0
)
SELECT
    i.cause,
    SUM(i.gaps)::BIGINT AS gaps,
    SUM(i.dur) / 1e6 AS total_ms,
    SUM(i.dur) / 1e6 / (SELECT COUNT(*) FROM devices) / (SELECT s.n FROM steps AS s) AS ms_per_step,
    MAX(i.dur) FILTER (i.gaps = 1) / 1e6 AS longest_ms,
    SUM(i.host_dur) / 1e6 AS host_ms,
    SUM(i.sync_dur) / 1e6 AS sync_ms,
    SUM(i.event_dur) / 1e6 AS event_ms,
    SUM(i.comm_dur) / 1e6 AS comm_ms,
    SUM(i.launch_dur) / 1e6 AS launch_ms,
    SUM(i.unknown_dur) / 1e6 AS unknown_ms
FROM device_idle AS i
WHERE $rank IS NULL OR i.rank = $rank
GROUP BY i.cause
ORDER BY total_ms DESC, i.cause

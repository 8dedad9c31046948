-- name idle_by_stream
-- description How long each stream is idle in a step, and because of what; the rest of the step it
--     works. Streams that are hardly used are the last.
-- param rank BIGINT NULL Only this rank; all where NULL.
-- param top BIGINT 50 Rows at most.
WITH steps AS (
    SELECT
        COUNT(DISTINCT p.step) AS n,
        SUM(p.total_dur) AS dur
    FROM critical_path AS p
    WHERE p.scenario_id = 0
)
SELECT
    i.rank,
    i.device,
    i.stream,
    (ANY_VALUE(s.dur) - SUM(i.dur)) / ANY_VALUE(s.n) / 1e6 AS busy_ms,
    SUM(i.dur) / ANY_VALUE(s.n) / 1e6 AS idle_ms,
    COALESCE(SUM(i.dur) FILTER (i.cause = 'host_late'), 0) / ANY_VALUE(s.n) / 1e6 AS host_late_ms,
    COALESCE(SUM(i.dur) FILTER (i.cause = 'sync_drain'), 0) / ANY_VALUE(s.n) / 1e6 AS sync_drain_ms,
    COALESCE(SUM(i.dur) FILTER (i.cause = 'event_wait'), 0) / ANY_VALUE(s.n) / 1e6 AS event_wait_ms,
    COALESCE(SUM(i.dur) FILTER (i.cause = 'comm_wait'), 0) / ANY_VALUE(s.n) / 1e6 AS comm_wait_ms,
    COALESCE(
        SUM(i.dur) FILTER (i.cause IN ('launch_overhead', 'short')), 0
    ) / ANY_VALUE(s.n) / 1e6 AS launching_ms,
    COALESCE(SUM(i.dur) FILTER (i.cause = 'no_more_work'), 0) / ANY_VALUE(s.n) / 1e6 AS no_more_work_ms,
    COALESCE(SUM(i.dur) FILTER (i.cause = 'unknown'), 0) / ANY_VALUE(s.n) / 1e6 AS unknown_ms
FROM stream_idle AS i
CROSS JOIN steps AS s
WHERE $rank IS NULL OR i.rank = $rank
GROUP BY i.rank, i.device, i.stream
ORDER BY busy_ms DESC, i.rank, i.device, i.stream
LIMIT $top

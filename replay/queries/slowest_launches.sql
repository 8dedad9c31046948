-- name slowest_launches
-- description Calls of the runtime that held the host longest (waits for the device left out).
-- param rank BIGINT NULL Only this rank; all where NULL.
-- param top BIGINT 20 Rows at most.
SELECT
    r.rank,
    s.step,
    r.api,
    r.kind,
    r.ts / 1e6 AS at_ms,
    r.dur / 1e3 AS call_us,
    p.name AS inside,
    k.short_name AS kernel
FROM runtime AS r
JOIN slice AS s ON s.id = r.id
LEFT JOIN slice AS p ON p.id = s.parent_id
LEFT JOIN kernel AS k ON k.runtime_id = r.id AND r.n_gpu_events = 1
WHERE
    r.kind NOT IN ('device_sync', 'stream_sync', 'event_sync')
    AND ($rank IS NULL OR r.rank = $rank)
ORDER BY r.dur DESC, r.id
LIMIT $top

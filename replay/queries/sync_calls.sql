-- name sync_calls
-- description Calls in which the host waited for a device, and the code that made them.
-- param rank BIGINT NULL Only this rank; all where NULL.
-- param top BIGINT 20 Rows at most.
SELECT
    r.api,
    r.kind,
    COALESCE(p.name, '(top level)') AS inside,
    COUNT(*) AS calls,
    SUM(r.dur) / 1e6 AS total_ms,
    MAX(r.dur) / 1e6 AS longest_ms,
    ARG_MAX(r.id, r.dur) AS longest_id
FROM runtime AS r
JOIN slice AS s ON s.id = r.id
LEFT JOIN slice AS p ON p.id = s.parent_id
WHERE
    r.kind IN ('device_sync', 'stream_sync', 'event_sync')
    AND ($rank IS NULL OR r.rank = $rank)
GROUP BY r.api, r.kind, p.name
ORDER BY total_ms DESC, r.api, inside
LIMIT $top

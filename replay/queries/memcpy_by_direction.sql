-- name memcpy_by_direction
-- description Copies by direction: how many, how much, how fast.
-- param rank BIGINT NULL Only this rank; all where NULL.
SELECT
    k.name AS direction,
    COUNT(*) AS copies,
    SUM(k.bytes) / 1e6 AS total_mb,
    SUM(k.dur) / 1e6 AS total_ms,
    SUM(k.bytes) / NULLIF(SUM(k.dur) FILTER (WHERE k.bytes IS NOT NULL), 0) AS gbps,
    MAX(k.bytes) / 1e6 AS largest_mb
FROM kernel AS k
WHERE k.class = 'memcpy' AND ($rank IS NULL OR k.rank = $rank)
GROUP BY k.name
ORDER BY total_ms DESC, direction

-- name unlinked_kernels
-- description Device work whose launching call is not in the trace, by name, and where it lies.
-- param rank BIGINT NULL Only this rank; all where NULL.
-- param top BIGINT 20 Rows at most.
SELECT
    k.rank,
    k.short_name,
    COUNT(*) AS instances,
    SUM(k.dur) / 1e6 AS total_ms,
    MIN(k.ts) / 1e6 AS first_ms,
    MAX(k.ts + k.dur) / 1e6 AS last_ms,
    COUNT(*) FILTER (WHERE k.graph_id IS NOT NULL) AS in_graphs
FROM kernel AS k
WHERE NOT k.linked AND ($rank IS NULL OR k.rank = $rank)
GROUP BY k.rank, k.short_name
ORDER BY total_ms DESC, k.rank, k.short_name
LIMIT $top

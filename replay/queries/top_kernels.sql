-- name top_kernels
-- description Device work that takes the most time, by name: where to look first.
-- param rank BIGINT NULL Only this rank; all where NULL.
-- param class VARCHAR NULL Only this class: gemm, attention, elementwise, collective, ...
-- param top BIGINT 20 Rows at most.
SELECT
    k.short_name,
    ANY_VALUE(k.class) AS class,
    COUNT(*) AS instances,
    SUM(k.dur) / 1e6 AS total_ms,
    100 * SUM(k.dur) / NULLIF(SUM(SUM(k.dur)) OVER (), 0) AS percent,
    AVG(k.dur) / 1e3 AS avg_us,
    MAX(k.dur) / 1e3 AS max_us
FROM kernel AS k
WHERE ($rank IS NULL OR k.rank = $rank) AND ($class IS NULL OR k.class = $class)
GROUP BY k.short_name
ORDER BY total_ms DESC, k.short_name
LIMIT $top

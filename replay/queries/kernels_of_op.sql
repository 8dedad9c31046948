-- name kernels_of_op
-- description Which device work an operator launches, and how long it takes.
-- param op VARCHAR * Name of the operator, with * and ? as in file names; case counts.
-- param rank BIGINT NULL Only this rank; all where NULL.
-- param top BIGINT 20 Rows at most.
SELECT
    o.name AS op,
    k.short_name AS kernel,
    COUNT(*) AS instances,
    SUM(k.dur) / 1e6 AS total_ms,
    AVG(k.dur) / 1e3 AS avg_us
FROM kernel AS k
JOIN slice AS o ON o.id = k.op_id
WHERE o.name GLOB $op AND ($rank IS NULL OR k.rank = $rank)
GROUP BY o.name, k.short_name
ORDER BY total_ms DESC, op, kernel
LIMIT $top

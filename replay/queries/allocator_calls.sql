-- name allocator_calls
-- description Calls that get memory from the driver or give it back, and the code that made them.
-- param ranks VARCHAR NULL Only these ranks, as in 0,1,2; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
-- param top BIGINT 20 Rows at most.
SELECT
    r.api,
    COALESCE(p.name, '(top level)') AS inside,
    COUNT(*) AS calls,
    SUM(r.dur) / 1e6 AS total_ms,
    MAX(r.dur) / 1e6 AS longest_ms
FROM runtime AS r
JOIN slice AS s ON s.id = r.id
LEFT JOIN slice AS p ON p.id = s.parent_id
WHERE
    r.kind IN ('malloc', 'free')
    AND ($ranks IS NULL OR LIST_CONTAINS(STRING_SPLIT($ranks, ','), r.rank::VARCHAR))
    AND ($first_step IS NULL OR s.step >= $first_step)
    AND ($last_step IS NULL OR s.step <= $last_step)
GROUP BY r.api, p.name
ORDER BY total_ms DESC, r.api, inside
LIMIT $top

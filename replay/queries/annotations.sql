-- name annotations
-- description Marked ranges of the program (record_function) with the device work launched directly
--     in them (of nested ranges, the innermost has it).
-- param name VARCHAR * Name of the range, with * and ? as in file names; case counts.
-- param rank BIGINT NULL Only this rank; all where NULL.
-- param top BIGINT 50 Rows at most.
WITH launched AS (
    SELECT
        k.annotation_id,
        COUNT(*) AS kernels,
        SUM(k.dur) AS device_dur
    FROM kernel AS k
    WHERE k.annotation_id IS NOT NULL
    GROUP BY k.annotation_id
)
SELECT
    s.name,
    COUNT(*) AS ranges,
    SUM(s.dur) / 1e6 AS total_ms,
    AVG(s.dur) / 1e6 AS avg_ms,
    SUM(s.self_dur) / 1e6 AS self_ms,
    COALESCE(SUM(l.kernels), 0)::BIGINT AS kernels,
    COALESCE(SUM(l.device_dur), 0) / 1e6 AS device_ms
FROM slice AS s
LEFT JOIN launched AS l ON l.annotation_id = s.id
WHERE s.cat = 'user_annotation' AND s.name GLOB $name AND ($rank IS NULL OR s.rank = $rank)
GROUP BY s.name
ORDER BY total_ms DESC, s.name
LIMIT $top

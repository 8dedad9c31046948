-- name python_hot_frames
-- description Python functions by the time that is their own (needs with_stack=True).
-- param rank BIGINT NULL Only this rank; all where NULL.
-- param top BIGINT 20 Rows at most.
SELECT
    s.name AS frame,
    COUNT(*) AS calls,
    SUM(s.self_dur) / 1e6 AS self_ms,
    MAX(s.dur) / 1e6 AS longest_ms
FROM slice AS s
WHERE s.cat = 'python_function' AND ($rank IS NULL OR s.rank = $rank)
GROUP BY s.name
ORDER BY self_ms DESC, frame
LIMIT $top

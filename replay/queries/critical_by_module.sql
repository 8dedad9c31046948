-- name critical_by_module
-- description Which module or annotation the steps hang on: its part of the critical path; the row
--     without one is all that lies outside of them.
-- param rank BIGINT NULL Only pieces on this rank; all where NULL.
-- param step BIGINT NULL Only this step; all where NULL.
-- param top BIGINT 20 Rows at most.
SELECT
    p.module,
    SUM(p.total_dur) / 1e6 AS total_ms,
    100 * SUM(p.total_dur) / NULLIF(SUM(SUM(p.total_dur)) OVER (), 0) AS percent,
    COALESCE(SUM(p.dur) FILTER (p.class = 'host'), 0) / 1e6 AS host_ms,
    COALESCE(SUM(p.dur) FILTER (p.class <> 'host'), 0) / 1e6 AS device_ms,
    COUNT(*) AS pieces
FROM critical_path AS p
WHERE p.scenario_id = 0 AND ($step IS NULL OR p.step = $step) AND ($rank IS NULL OR p.rank = $rank)
GROUP BY p.module
ORDER BY total_ms DESC, p.module
LIMIT $top

-- name critical_by_rank
-- description Which rank the steps hang on: its part of the critical path, and what it did there.
-- param step BIGINT NULL Only this step; all where NULL.
SELECT
    p.rank,
    SUM(p.total_dur) / 1e6 AS total_ms,
    100 * SUM(p.total_dur) / NULLIF(SUM(SUM(p.total_dur)) OVER (), 0) AS percent,
    COALESCE(SUM(p.dur) FILTER (p.class = 'host'), 0) / 1e6 AS host_ms,
    COALESCE(SUM(p.dur) FILTER (p.class = 'collective'), 0) / 1e6 AS collective_ms,
    COALESCE(SUM(p.dur) FILTER (p.class NOT IN ('host', 'collective')), 0) / 1e6 AS device_ms,
    SUM(p.lag_dur) / 1e6 AS lag_ms,
    SUM(p.residual_dur) / 1e6 AS residual_ms
FROM critical_path AS p
WHERE p.scenario_id = 0 AND ($step IS NULL OR p.step = $step)
GROUP BY p.rank
ORDER BY total_ms DESC, p.rank

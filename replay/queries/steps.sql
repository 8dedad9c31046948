-- name steps
-- description Steps of each rank: time of the host, device work launched in it, its sum by kind.
-- param rank BIGINT NULL Only this rank; all where NULL.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH work AS (
    SELECT
        k.rank,
        k.step,
        COUNT(*) AS kernels,
        SUM(k.dur) FILTER (WHERE k.class NOT IN ('collective', 'memcpy', 'memset')) AS compute_dur,
        SUM(k.dur) FILTER (WHERE k.class = 'collective') AS collective_dur,
        SUM(k.dur) FILTER (WHERE k.class IN ('memcpy', 'memset')) AS copy_dur
    FROM kernel AS k
    GROUP BY k.rank, k.step
)
SELECT
    p.rank,
    p.step,
    p.ts / 1e6 AS at_ms,
    p.dur / 1e6 AS host_ms,
    p.complete,
    w.kernels,
    w.compute_dur / 1e6 AS compute_ms,
    w.collective_dur / 1e6 AS collective_ms,
    w.copy_dur / 1e6 AS copy_ms
FROM step AS p
LEFT JOIN work AS w ON w.rank = p.rank AND w.step = p.step
WHERE
    ($rank IS NULL OR p.rank = $rank)
    AND is_chosen($ranks, p.rank)
    AND ($first_step IS NULL OR p.step >= $first_step)
    AND ($last_step IS NULL OR p.step <= $last_step)
ORDER BY p.rank, p.step

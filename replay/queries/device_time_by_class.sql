-- name device_time_by_class
-- description Time of device work by phase of the step and class, summed over streams, per rank.
-- param ranks VARCHAR NULL Only these ranks, as in 0,1,2; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
SELECT
    k.rank,
    k.phase,
    k.class,
    COUNT(*) AS launched,
    SUM(k.dur) / 1e6 AS total_ms,
    MEDIAN(k.dur) / 1e3 AS median_us
FROM kernel AS k
WHERE
    ($ranks IS NULL OR LIST_CONTAINS(STRING_SPLIT($ranks, ','), k.rank::VARCHAR))
    AND ($first_step IS NULL OR k.step >= $first_step)
    AND ($last_step IS NULL OR k.step <= $last_step)
GROUP BY k.rank, k.phase, k.class
ORDER BY k.rank, total_ms DESC, k.phase, k.class

-- name time_by_rank
-- description Where device time goes in each rank, in the mean of devices and steps: the four parts
--     add up to the step.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
SELECT
    g.rank,
    AVG(g.total_dur) / 1e6 AS step_ms,
    AVG(g.compute_dur) / 1e6 AS compute_ms,
    AVG(g.exposed_comm_dur) / 1e6 AS exposed_comm_ms,
    AVG(g.exposed_wait_dur) / 1e6 AS of_it_waiting_ms,
    AVG(g.exposed_memcpy_dur) / 1e6 AS exposed_memcpy_ms,
    AVG(g.idle_dur) / 1e6 AS idle_ms
FROM gpu_timeline AS g
WHERE
    is_chosen($ranks, g.rank)
    AND ($first_step IS NULL OR g.step >= $first_step)
    AND ($last_step IS NULL OR g.step <= $last_step)
GROUP BY g.rank
ORDER BY g.rank

-- name late_ranks
-- description Who comes last to the collectives, and what the others wait because of it.
-- param min_skew_us DOUBLE 0 Only operations whose first and last member are so far apart, us.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
span AS (
    SELECT s.*
    FROM step_span($first_step, $last_step) AS s
),
apart AS (
    SELECT c.coll_id
    FROM collective AS c
    CROSS JOIN span AS s
    WHERE c.n_seen > 1 AND c.last_arrival - c.first_arrival >= $min_skew_us * 1e3
        AND (
            $first_step IS NULL AND $last_step IS NULL
            OR (c.first_arrival < s.end_ts AND c.end_ts > s.ts)
        )
)
SELECT
    m.rank,
    COUNT(*) AS collectives,
    COUNT(l.rank) AS times_last,
    100 * AVG((l.rank IS NOT NULL)::INTEGER) AS percent_last,
    SUM(m.wait_dur) / 1e6 AS own_wait_ms,
    COALESCE(SUM(l.wait_dur), 0) / 1e6 AS wait_caused_ms
FROM collective_rank AS m
JOIN apart AS a ON a.coll_id = m.coll_id
LEFT JOIN collective_late AS l ON l.kernel_id = m.kernel_id
WHERE is_chosen($ranks, m.rank)
GROUP BY m.rank
ORDER BY wait_caused_ms DESC, m.rank

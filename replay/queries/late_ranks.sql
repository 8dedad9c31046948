-- name late_ranks
-- description Who comes last to the collectives, and what the others wait because of it.
-- param min_skew_us DOUBLE 0 Only operations whose first and last member are so far apart, us.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,2; all where NULL.
-- param first_step BIGINT NULL Only operations that run from this step on.
-- param last_step BIGINT NULL Only operations that run up to this step.
WITH
span AS (
    SELECT
        MIN(w.ts) AS ts,
        MAX(w.ts + w.dur) AS end_ts
    FROM step_window AS w
    WHERE NOT w.is_recorded
        OR w.step BETWEEN COALESCE($first_step, w.step) AND COALESCE($last_step, w.step)
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
WHERE $ranks IS NULL OR LIST_CONTAINS(STRING_SPLIT($ranks, ','), m.rank::VARCHAR)
GROUP BY m.rank
ORDER BY wait_caused_ms DESC, m.rank

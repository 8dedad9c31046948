-- name late_ranks
-- description Who comes last to the collectives, and what the others wait because of it.
-- param min_skew_us DOUBLE 0 Only operations whose first and last member are so far apart, us.
WITH late AS (
    SELECT
        c.coll_id,
        c.last_rank
    FROM collective AS c
    WHERE c.n_seen > 1 AND c.last_arrival - c.first_arrival >= $min_skew_us * 1e3
)
SELECT
    m.rank,
    COUNT(*) AS collectives,
    COUNT(*) FILTER (WHERE m.rank = l.last_rank) AS times_last,
    100 * AVG((m.rank = l.last_rank)::INTEGER) AS percent_last,
    SUM(m.wait_dur) / 1e6 AS own_wait_ms,
    COALESCE(ANY_VALUE(caused.wait_dur), 0) / 1e6 AS wait_caused_ms
FROM collective_rank AS m
JOIN late AS l ON l.coll_id = m.coll_id
LEFT JOIN (
    SELECT
        b.last_rank,
        SUM(w.wait_dur) AS wait_dur
    FROM collective_rank AS w
    JOIN late AS b ON b.coll_id = w.coll_id
    WHERE w.rank <> b.last_rank
    GROUP BY b.last_rank
) AS caused ON caused.last_rank = m.rank
GROUP BY m.rank
ORDER BY wait_caused_ms DESC, m.rank

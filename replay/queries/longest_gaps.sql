-- name longest_gaps
-- description Longest times in which a stream did nothing, and the call that ended each: was the
--     host late, or did the work stand in the queue?
-- param rank BIGINT NULL Only this rank; all where NULL.
-- param min_us DOUBLE 10 Shortest gap, us.
-- param top BIGINT 20 Rows at most.
SELECT
    k.rank,
    k.device,
    k.stream,
    k.step,
    (k.ts - k.gap_dur) / 1e6 AS from_ms,
    k.gap_dur / 1e3 AS gap_us,
    before.short_name AS after_kernel,
    k.short_name AS next_kernel,
    r.api AS launched_by,
    (k.ts - r.ts) / 1e3 AS since_launch_us,
    CASE
        WHEN r.ts IS NULL THEN 'unlinked'
        WHEN r.ts > k.ts - k.gap_dur THEN 'host late'
        ELSE 'queued before'
    END AS reason
FROM kernel AS k
LEFT JOIN kernel AS before ON before.id = k.prev_id
LEFT JOIN runtime AS r ON r.id = k.runtime_id
WHERE k.gap_dur >= $min_us * 1e3 AND ($rank IS NULL OR k.rank = $rank)
ORDER BY k.gap_dur DESC, k.id
LIMIT $top

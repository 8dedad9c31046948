-- name launch_lead
-- description How far each host is ahead of its devices: time from the end of a launching call to the
--     start of its work, for the calls in the steps of the host, and how many calls are queued.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
hosts AS (
    SELECT h.*
    FROM host_span($ranks, $first_step, $last_step) AS h
),
lead AS (
    SELECT
        q.rank,
        q.depth,
        q.is_full,
        GREATEST(k.ts - (q.ts + q.dur), 0) AS lead_dur
    FROM queue_depth AS q
    JOIN hosts AS h ON h.rank = q.rank AND q.ts >= h.ts AND q.ts < h.end_ts
    JOIN (
        SELECT
            w.runtime_id,
            MIN(w.ts) AS ts
        FROM kernel AS w
        WHERE w.runtime_id IS NOT NULL
        GROUP BY w.runtime_id
    ) AS k ON k.runtime_id = q.runtime_id
)
SELECT
    l.rank,
    COUNT(*) AS launches,
    QUANTILE_CONT(l.lead_dur, 0.05) AS p5_lead_dur,
    MEDIAN(l.lead_dur) AS med_lead_dur,
    QUANTILE_CONT(l.lead_dur, 0.95) AS p95_lead_dur,
    AVG((l.lead_dur <= 20000)::INTEGER) AS short_lead_frac,
    MEDIAN(l.depth) AS med_depth,
    MAX(l.depth) AS max_depth,
    COUNT(*) FILTER (l.is_full) AS full_launches
FROM lead AS l
GROUP BY l.rank
ORDER BY l.rank

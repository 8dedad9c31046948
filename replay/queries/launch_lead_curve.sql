-- name launch_lead_curve
-- description How far each host is ahead of its devices over time: the median lead of the calls in
--     each of equal stretches of the steps of the host.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
-- param stretches BIGINT 120 How many of them.
WITH
hosts AS (
    SELECT h.*
    FROM host_span($ranks, $first_step, $last_step) AS h
),
whole AS (
    SELECT
        MIN(h.ts) AS ts,
        GREATEST((MAX(h.end_ts) - MIN(h.ts)) / $stretches, 1) AS stretch_dur
    FROM hosts AS h
),
lead AS (
    SELECT
        r.rank,
        FLOOR((r.ts - w.ts) / w.stretch_dur)::BIGINT AS stretch,
        GREATEST(MIN(k.ts) - ANY_VALUE(r.ts + r.dur), 0) AS lead_dur
    FROM kernel AS k
    JOIN runtime AS r ON r.id = k.runtime_id
    JOIN hosts AS h ON h.rank = r.rank AND r.ts >= h.ts AND r.ts < h.end_ts
    CROSS JOIN whole AS w
    GROUP BY r.id, r.rank, stretch
)
SELECT
    l.rank,
    l.stretch,
    ((l.stretch + 0.5) * ANY_VALUE(w.stretch_dur))::BIGINT AS after_dur,
    MEDIAN(l.lead_dur) AS med_lead_dur,
    COUNT(*) AS launches
FROM lead AS l
CROSS JOIN whole AS w
GROUP BY l.rank, l.stretch
ORDER BY l.rank, l.stretch

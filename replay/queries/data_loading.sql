-- name data_loading
-- description Fetching of batches on each rank in the steps of the host: how long the loop waits for
--     the loader, per step (outermost rows that name a DataLoader).
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
hosts AS (
    SELECT h.*
    FROM host_span($ranks, $first_step, $last_step) AS h
),
loading AS (
    SELECT
        s.rank,
        s.name,
        s.ts,
        s.dur,
        MAX(s.ts + s.dur) OVER (
            PARTITION BY s.utid ORDER BY s.ts, s.depth
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reach
    FROM slice AS s
    WHERE s.name LIKE '%DataLoader%' AND s.cat IN ('user_annotation', 'cpu_op')
)
SELECT
    h.rank,
    o.name,
    COUNT(*) AS calls,
    SUM(o.dur) / ANY_VALUE(h.steps) AS step_dur,
    SUM(o.dur) / NULLIF(ANY_VALUE(h.end_ts) - ANY_VALUE(h.ts), 0) AS time_frac,
    MEDIAN(o.dur) AS med_dur,
    MAX(o.dur) AS max_dur
FROM loading AS o
JOIN hosts AS h ON h.rank = o.rank AND o.ts >= h.ts AND o.ts < h.end_ts
WHERE o.reach IS NULL OR o.ts >= o.reach
GROUP BY h.rank, o.name
ORDER BY h.rank, step_dur DESC, o.name

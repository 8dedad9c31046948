-- name host_waits
-- description What the threads of each rank waited for in the steps, by the edges of the graph: the
--     device, another thread, a collective. Waiting is no work: it ends when something else does.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
counted AS (
    SELECT COUNT(*) AS steps
    FROM step_window AS w
    WHERE ($first_step IS NULL OR w.step >= $first_step)
        AND ($last_step IS NULL OR w.step <= $last_step)
),
host AS (
    SELECT
        t.task_id,
        t.rank,
        t.lane,
        t.ts,
        t.ts - LAG(t.ts + t.dur) OVER (
            PARTITION BY t.rank, t.lane ORDER BY t.ts, t.task_id
        ) AS wait_dur
    FROM task AS t
    WHERE t.kind IN ('host_work', 'host_call', 'host_wait')
        AND is_chosen($ranks, t.rank)
),
cause AS (
    SELECT
        e.dst_id,
        MIN(
            CASE
                WHEN e.kind = 'hand_over' THEN 'another thread'
                WHEN s.collective IS NOT NULL THEN 'a collective'
                WHEN e.kind = 'host_sync' THEN 'the device'
                ELSE e.kind
            END
        ) AS awaited
    FROM edge AS e
    JOIN task AS s ON s.task_id = e.src_id
    JOIN host AS h ON h.task_id = e.dst_id
    WHERE e.binding AND e.kind <> 'program_order'
    GROUP BY e.dst_id
)
SELECT
    h.rank,
    h.lane,
    COALESCE(c.awaited, 'not known') AS awaited,
    COUNT(*) AS waits,
    SUM(h.wait_dur) / ANY_VALUE(n.steps) AS step_dur,
    MAX(h.wait_dur) AS max_dur
FROM host AS h
CROSS JOIN counted AS n
LEFT JOIN cause AS c ON c.dst_id = h.task_id
JOIN step_window AS w ON h.ts >= w.ts AND h.ts < w.ts + w.dur
WHERE h.wait_dur > 0
    AND ($first_step IS NULL OR w.step >= $first_step)
    AND ($last_step IS NULL OR w.step <= $last_step)
GROUP BY h.rank, h.lane, COALESCE(c.awaited, 'not known')
ORDER BY h.rank, step_dur DESC, h.lane, awaited

-- name idle_by_rank
-- description Why each device does nothing, per step: idle time by what the next work waited for. The
--     mean over devices and ranks adds up to the idle time of the steps. In_graph: before a kernel of
--     a CUDA graph; queued: the next work stood in the queue; both mean that something ran without a
--     row, rather than that the device was idle.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,2; all where NULL.
-- param first_step BIGINT NULL From this step on.
-- param last_step BIGINT NULL Up to this step.
WITH
chosen AS (
    SELECT DISTINCT
        t.rank,
        t.device
    FROM task AS t
    WHERE t.stream IS NOT NULL
        AND ($ranks IS NULL OR LIST_CONTAINS(STRING_SPLIT($ranks, ','), t.rank::VARCHAR))
),
steps AS (
    SELECT COUNT(DISTINCT p.step) AS n
    FROM critical_path AS p
    WHERE p.scenario_id = 0
        AND p.step BETWEEN COALESCE($first_step, p.step) AND COALESCE($last_step, p.step)
),
share AS (
    SELECT
        c.rank,
        c.device,
        1.0 / (
            (SELECT COUNT(DISTINCT o.rank) FROM chosen AS o)
            * COUNT(*) OVER (PARTITION BY c.rank) * s.n
        ) AS share
    FROM chosen AS c
    CROSS JOIN steps AS s
),
gap AS (
    SELECT
        i.*,
        CASE
            WHEN i.cause <> 'unknown' THEN i.cause
            WHEN r.kind = 'graph_launch' OR r.n_gpu_events > 2 THEN 'in_graph'
            WHEN r.ts + r.dur <= i.ts + i.dur / 10 THEN 'queued'
            ELSE 'unknown'
        END AS told_cause
    FROM device_idle AS i
    LEFT JOIN kernel AS k ON k.id = i.next_slice_id
    LEFT JOIN runtime AS r ON r.id = k.runtime_id
    WHERE i.step BETWEEN COALESCE($first_step, i.step) AND COALESCE($last_step, i.step)
)
SELECT
    g.rank,
    g.device,
    g.told_cause AS cause,
    SUM(g.gaps)::BIGINT AS gaps,
    SUM(g.dur) / ANY_VALUE(s.n) AS idle_ns,
    SUM(g.dur * h.share) AS mean_ns,
    MAX(g.dur) FILTER (g.gaps = 1) AS longest_ns
FROM gap AS g
JOIN share AS h ON h.rank = g.rank AND h.device = g.device
CROSS JOIN steps AS s
GROUP BY g.rank, g.device, g.told_cause
ORDER BY g.rank, g.device, idle_ns DESC, cause

-- name idle_by_rank
-- description Why each device does nothing, per step: idle time by what the next work waited for. The
--     mean over devices and ranks adds up to the idle time of the steps. In_graph: before a kernel of
--     a CUDA graph; queued: the next work stood in the queue; both mean that something ran without a
--     row, rather than that the device was idle.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
chosen AS (
    SELECT DISTINCT
        t.rank,
        t.device
    FROM task AS t
    WHERE t.stream IS NOT NULL
        AND is_chosen($ranks, t.rank)
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
    SELECT i.*
    FROM store.told_idle AS i
    WHERE i.step BETWEEN COALESCE($first_step, i.step) AND COALESCE($last_step, i.step)
)
SELECT
    g.rank,
    g.device,
    g.cause,
    SUM(g.gaps)::BIGINT AS gaps,
    SUM(g.dur) / ANY_VALUE(s.n) AS idle_ns,
    SUM(g.dur * h.share) AS mean_ns,
    MAX(g.dur) FILTER (g.gaps = 1) AS longest_ns
FROM gap AS g
JOIN share AS h ON h.rank = g.rank AND h.device = g.device
CROSS JOIN steps AS s
GROUP BY g.rank, g.device, g.cause
ORDER BY g.rank, g.device, idle_ns DESC, cause

-- name idle_culprits
-- description What devices that do nothing wait for, summed: the task that took the longest part of each
--     gap, by name and module (no name: host work outside of operators); per step, mean over devices
--     and ranks.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
-- param top BIGINT 20 Rows at most.
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
    g.cause,
    t.class,
    IF(t.name LIKE 'ProfilerStep#%', NULL, t.name) AS name,
    t.module,
    COUNT(DISTINCT g.rank) AS ranks,
    SUM(g.gaps)::BIGINT AS gaps,
    SUM(g.dur * h.share) AS idle_ns,
    MAX(g.dur) FILTER (g.gaps = 1) AS longest_ns
FROM gap AS g
JOIN share AS h ON h.rank = g.rank AND h.device = g.device
LEFT JOIN task AS t ON t.task_id = g.culprit_task_id
GROUP BY g.cause, t.class, IF(t.name LIKE 'ProfilerStep#%', NULL, t.name), t.module
ORDER BY idle_ns DESC, cause, name, t.module
LIMIT $top

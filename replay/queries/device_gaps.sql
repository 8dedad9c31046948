-- name device_gaps
-- description Longest times in which a device did nothing, why, the task that took most of each, and what
--     its host was in: operator, annotation and Python frame (needs with_stack=True), innermost first.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,2; all where NULL.
-- param first_step BIGINT NULL From this step on.
-- param last_step BIGINT NULL Up to this step.
-- param top BIGINT 12 Rows at most.
WITH RECURSIVE
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
),
longest AS (
    SELECT g.*
    FROM gap AS g
    WHERE g.gaps = 1 AND g.told_cause <> 'short'
        AND ($ranks IS NULL OR LIST_CONTAINS(STRING_SPLIT($ranks, ','), g.rank::VARCHAR))
    ORDER BY g.dur DESC, g.rank, g.device, g.ts
    LIMIT $top
),
placed AS (
    SELECT
        l.*,
        COALESCE(IF(t.class = 'host', l.culprit_slice_id, NULL), i.cpu_slice_id) AS cpu_slice_id
    FROM longest AS l
    LEFT JOIN task AS t ON t.task_id = l.culprit_task_id
    LEFT JOIN gpu_idle AS i ON i.rank = l.rank AND i.device = l.device AND i.ts = l.ts
),
up AS (
    SELECT
        p.cpu_slice_id AS first_id,
        s.id,
        s.parent_id,
        s.cat,
        s.name,
        0 AS level
    FROM (SELECT DISTINCT p.cpu_slice_id FROM placed AS p) AS p
    JOIN slice AS s ON s.id = p.cpu_slice_id
    UNION ALL
    SELECT
        u.first_id,
        s.id,
        s.parent_id,
        s.cat,
        s.name,
        u.level + 1
    FROM up AS u
    JOIN slice AS s ON s.id = u.parent_id
),
inside AS (
    SELECT
        u.first_id,
        ARG_MIN(u.name, u.level) FILTER (u.cat = 'cpu_op') AS op,
        ARG_MIN(u.name, u.level) FILTER (
            u.cat = 'user_annotation' AND u.name NOT LIKE 'ProfilerStep#%'
        ) AS annotation,
        COALESCE(
            ARG_MIN(u.name, u.level) FILTER (
                u.cat = 'python_function'
                AND NOT REGEXP_MATCHES(u.name, '^(<|torch/|threading|contextlib|nn\.Module)|-packages/')
            ),
            ARG_MIN(u.name, u.level) FILTER (u.cat = 'python_function' AND u.name NOT LIKE '<%')
        ) AS frame,
        STRING_AGG(u.name, ' < ' ORDER BY u.level) FILTER (
            u.cat = 'python_function' AND u.name NOT LIKE '<%'
        ) AS stack
    FROM up AS u
    GROUP BY u.first_id
)
SELECT
    p.rank,
    p.device,
    p.step,
    p.ts,
    p.dur AS idle_ns,
    p.told_cause AS cause,
    t.rank AS culprit_rank,
    t.name AS culprit,
    COALESCE(t.module, n.module) AS module,
    n.name AS next_kernel,
    i.op,
    i.annotation,
    i.frame,
    i.stack,
    p.host_dur AS host_ns,
    p.sync_dur AS sync_ns,
    p.event_dur AS event_ns,
    p.comm_dur AS comm_ns,
    p.launch_dur AS launch_ns,
    p.unknown_dur AS unknown_ns
FROM placed AS p
LEFT JOIN task AS t ON t.task_id = p.culprit_task_id
LEFT JOIN task AS n ON n.task_id = p.next_task_id
LEFT JOIN inside AS i ON i.first_id = p.cpu_slice_id
ORDER BY p.dur DESC, p.rank, p.device, p.ts

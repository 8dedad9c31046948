-- name device_gaps
-- description Longest times in which a device did nothing, why, the task that took most of each, and what
--     its host was in: operator, annotation and Python frame (needs with_stack=True), innermost first.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
-- param top BIGINT 12 Rows at most.
WITH RECURSIVE
gap AS (
    SELECT i.*
    FROM store.told_idle AS i
    WHERE i.step BETWEEN COALESCE($first_step, i.step) AND COALESCE($last_step, i.step)
),
longest AS (
    SELECT g.*
    FROM gap AS g
    WHERE g.gaps = 1 AND g.cause <> 'short'
        AND is_chosen($ranks, g.rank)
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
    p.cause,
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

-- name recomputation
-- description Device work that activation checkpointing computes again in the backward, by the rows
--     that name it: frames of torch.utils.checkpoint (with_stack), its autograd function, or
--     annotations with `recompute`.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
chosen AS (
    SELECT s.*
    FROM step_span($first_step, $last_step) AS s
),
named AS (
    SELECT
        s.utid,
        s.ts,
        s.ts + s.dur AS end_ts,
        s.name,
        MAX(s.ts + s.dur) OVER (
            PARTITION BY s.utid ORDER BY s.ts, s.depth
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reach
    FROM slice AS s
    WHERE s.cat IN ('cpu_op', 'user_annotation', 'python_function')
        AND REGEXP_MATCHES(
            s.name,
            '(?i)recompute|CheckpointFunctionBackward|utils/checkpoint.py.*unpack_hook'
        )
        AND NOT REGEXP_MATCHES(s.name, 'check_recompute|evaluate_function')
),
outermost AS (
    SELECT
        n.utid,
        n.ts,
        n.end_ts,
        n.name
    FROM named AS n
    WHERE n.reach IS NULL OR n.ts >= n.reach
),
engine AS (
    SELECT
        s.utid,
        s.ts,
        s.ts + s.dur AS end_ts
    FROM slice AS s
    WHERE s.cat = 'cpu_op' AND s.name LIKE 'autograd::engine::evaluate_function%'
),
launched AS (
    SELECT
        k.rank,
        COALESCE(k.device, 0) AS device,
        k.class,
        k.dur,
        r.utid,
        r.ts
    FROM kernel AS k
    JOIN slice AS r ON r.id = k.runtime_id
    CROSS JOIN chosen AS c
    WHERE k.ts >= c.ts AND k.ts < c.end_ts
        AND is_chosen($ranks, k.rank)
),
devices AS (
    SELECT COUNT(DISTINCT (l.rank, l.device)) AS n
    FROM launched AS l
),
again AS (
    SELECT
        l.*,
        o.name
    FROM launched AS l
    ASOF JOIN outermost AS o ON o.utid = l.utid AND o.ts <= l.ts
    ASOF LEFT JOIN engine AS e ON e.utid = l.utid AND e.ts <= l.ts
    WHERE l.ts < o.end_ts AND (e.ts IS NULL OR e.ts < o.ts OR e.end_ts <= l.ts)
)
SELECT
    a.class,
    COUNT(*) AS instances,
    SUM(a.dur) / (ANY_VALUE(c.steps) * ANY_VALUE(d.n)) AS step_dur,
    MODE(a.name ORDER BY a.name) AS inside
FROM again AS a
CROSS JOIN chosen AS c
CROSS JOIN devices AS d
GROUP BY a.class
ORDER BY step_dur DESC, a.class

-- name op_times
-- description Operators in the steps of the host: host time of their own and device time that they
--     launch, per step and rank.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
-- param top BIGINT NULL Rows at most; all where NULL.
WITH
hosts AS (
    SELECT h.*
    FROM host_span($ranks, $first_step, $last_step) AS h
),
launched AS (
    SELECT
        k.op_id,
        SUM(k.dur) AS dur,
        COUNT(*) AS n
    FROM kernel AS k
    WHERE k.op_id IS NOT NULL
    GROUP BY k.op_id
),
called AS (
    SELECT
        s.name,
        s.self_dur,
        s.dur,
        o.module_id,
        l.dur AS device_dur,
        l.n AS device_rows
    FROM slice AS s
    JOIN cpu_op AS o ON o.id = s.id
    JOIN hosts AS h ON h.rank = s.rank AND s.ts >= h.ts AND s.ts < h.end_ts
    LEFT JOIN launched AS l ON l.op_id = s.id
),
whole AS (
    SELECT SUM(h.steps) AS rank_steps
    FROM hosts AS h
),
placed AS (
    SELECT
        w.name,
        w.module_id,
        COALESCE(SUM(w.device_dur), 0) + SUM(w.self_dur) AS dur
    FROM called AS w
    WHERE w.module_id IS NOT NULL
    GROUP BY w.name, w.module_id
),
within AS (
    SELECT
        p.name,
        m.name AS module,
        SUM(p.dur) AS dur
    FROM placed AS p
    JOIN slice AS m ON m.id = p.module_id
    WHERE m.name NOT LIKE 'ProfilerStep%'
    GROUP BY p.name, m.name
),
main AS (
    SELECT
        i.name,
        ARG_MAX(i.module, (i.dur, i.module)) AS module
    FROM within AS i
    GROUP BY i.name
)
SELECT
    w.name AS op,
    COUNT(*) AS calls,
    SUM(w.self_dur) / ANY_VALUE(x.rank_steps) AS step_self_dur,
    COALESCE(SUM(w.device_dur), 0) / ANY_VALUE(x.rank_steps) AS step_device_dur,
    COALESCE(SUM(w.device_rows), 0)::BIGINT AS device_rows,
    SUM(w.self_dur) / COUNT(*) AS avg_self_dur,
    MAX(w.dur) AS max_dur,
    ANY_VALUE(m.module) AS module
FROM called AS w
CROSS JOIN whole AS x
LEFT JOIN main AS m ON m.name = w.name
GROUP BY w.name
ORDER BY SUM(w.self_dur) + COALESCE(SUM(w.device_dur), 0) DESC, w.name
LIMIT $top

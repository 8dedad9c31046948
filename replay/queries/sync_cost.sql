-- name sync_cost
-- description Calls in which the host waits for a device, by the code that makes them: time in the call,
--     and the idle time of the device that began in it, until its next work started; zero where the
--     device had more to do. Per step, mean over ranks.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
-- param top BIGINT 20 Rows at most.
WITH RECURSIVE
span AS (
    SELECT s.*
    FROM step_span($first_step, $last_step) AS s
),
chosen AS (
    SELECT DISTINCT t.rank
    FROM trace AS t
    WHERE is_chosen($ranks, t.rank)
),
blocking AS (
    SELECT
        r.id,
        r.rank,
        r.api,
        r.ts,
        r.dur
    FROM runtime AS r
    JOIN chosen AS c ON c.rank = r.rank
    JOIN span AS s ON r.ts >= s.ts AND r.ts < s.end_ts
    WHERE r.kind IN ('device_sync', 'stream_sync', 'event_sync', 'free')
        OR (r.kind = 'memcpy' AND r.api NOT LIKE '%Async')
        OR r.id IN (
            SELECT k.runtime_id FROM kernel AS k
            WHERE k.class = 'memcpy' AND REGEXP_MATCHES(k.name, 'Device -> Pageable|DeviceToHost')
        )
),
followed AS (
    SELECT
        b.id,
        i.dur
    FROM device_idle AS i
    ASOF JOIN blocking AS b ON b.rank = i.rank AND i.ts >= b.ts
    WHERE i.gaps = 1 AND i.cause IN ('host_late', 'sync_drain', 'launch_overhead')
        AND i.ts <= b.ts + b.dur
),
cost AS (
    SELECT
        f.id,
        SUM(f.dur) AS idle_dur
    FROM followed AS f
    GROUP BY f.id
),
up AS (
    SELECT
        b.id AS first_id,
        s.parent_id,
        s.cat,
        s.name,
        0 AS level
    FROM blocking AS b
    JOIN slice AS s ON s.id = b.id
    UNION ALL
    SELECT
        u.first_id,
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
        ) AS frame
    FROM up AS u
    GROUP BY u.first_id
)
SELECT
    b.api,
    i.op,
    i.annotation,
    i.frame,
    COUNT(*) AS calls,
    COUNT(*) / ANY_VALUE(s.steps) / (SELECT COUNT(*) FROM chosen) AS calls_per_step,
    COUNT(c.id) AS calls_with_idle,
    SUM(b.dur) / ANY_VALUE(s.steps) / (SELECT COUNT(*) FROM chosen) AS call_ns,
    COALESCE(SUM(c.idle_dur), 0) / ANY_VALUE(s.steps) / (SELECT COUNT(*) FROM chosen) AS idle_ns,
    MAX(c.idle_dur) AS longest_idle_ns
FROM blocking AS b
CROSS JOIN span AS s
LEFT JOIN inside AS i ON i.first_id = b.id
LEFT JOIN cost AS c ON c.id = b.id
GROUP BY b.api, i.op, i.annotation, i.frame
ORDER BY idle_ns DESC, call_ns DESC, b.api, i.op, i.annotation, i.frame
LIMIT $top

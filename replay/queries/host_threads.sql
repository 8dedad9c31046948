-- name host_threads
-- description Threads of each rank in the steps of the host: time of their own in operators, calls,
--     waits for the device, Python frames and annotations, per step.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL Only from this step on.
-- param last_step BIGINT NULL Only up to this step.
WITH
hosts AS (
    SELECT
        t.rank,
        MIN(COALESCE(p.ts, w.ts)) AS ts,
        MAX(COALESCE(p.ts + p.dur, w.ts + w.dur)) AS end_ts,
        COUNT(DISTINCT w.step) AS steps
    FROM step_window AS w
    CROSS JOIN trace AS t
    LEFT JOIN step AS p
        ON p.trace_id = t.trace_id AND p.step = w.step AND p.source = 'ProfilerStep'
    WHERE ($first_step IS NULL OR w.step >= $first_step)
        AND ($last_step IS NULL OR w.step <= $last_step)
        AND ($ranks IS NULL OR t.rank IN (SELECT UNNEST(STRING_SPLIT($ranks::VARCHAR, ','))::BIGINT))
    GROUP BY t.rank
)
SELECT
    h.rank,
    d.role,
    d.name AS thread,
    d.tid,
    COUNT(*) FILTER (s.cat = 'cpu_op') AS ops,
    COALESCE(SUM(s.self_dur) FILTER (s.cat = 'cpu_op'), 0) / ANY_VALUE(h.steps) AS step_op_dur,
    COALESCE(
        SUM(s.self_dur) FILTER (
            r.id IS NOT NULL AND r.kind NOT IN ('device_sync', 'stream_sync', 'event_sync')
        ), 0
    ) / ANY_VALUE(h.steps) AS step_call_dur,
    COALESCE(
        SUM(s.self_dur) FILTER (r.kind IN ('device_sync', 'stream_sync', 'event_sync')), 0
    ) / ANY_VALUE(h.steps) AS step_sync_dur,
    COALESCE(SUM(s.self_dur) FILTER (s.cat = 'python_function'), 0) / ANY_VALUE(h.steps)
        AS step_python_dur,
    COALESCE(
        SUM(s.self_dur) FILTER (
            s.cat = 'user_annotation' AND s.name NOT LIKE 'ProfilerStep%'
        ), 0
    ) / ANY_VALUE(h.steps) AS step_annotation_dur,
    (ANY_VALUE(h.end_ts) - ANY_VALUE(h.ts)) / ANY_VALUE(h.steps) AS step_dur
FROM slice AS s
JOIN hosts AS h ON h.rank = s.rank AND s.ts >= h.ts AND s.ts < h.end_ts
JOIN thread AS d ON d.utid = s.utid
LEFT JOIN runtime AS r ON r.id = s.id
WHERE d.role <> 'stream'
    AND s.cat NOT IN ('Trace', 'overhead', 'gpu_user_annotation', 'cuda_sync')
GROUP BY h.rank, d.role, d.name, d.tid
HAVING SUM(s.self_dur) FILTER (s.name NOT LIKE 'ProfilerStep%') > 0
ORDER BY h.rank, SUM(s.self_dur) FILTER (s.name NOT LIKE 'ProfilerStep%') DESC, d.tid

-- name host_threads
-- description Threads of each rank in the steps of the host: time of their own in operators, calls,
--     waits for the device, Python frames and annotations, per step.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
hosts AS (
    SELECT h.*
    FROM host_span($ranks, $first_step, $last_step) AS h
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

-- What takes the time, by name: device work, calls, operators, modules, frames, memory. A summary
-- has one row per rank and name unless its comment says that it is over all ranks.

CREATE VIEW kernel_summary AS
SELECT
    k.short_name,
    ANY_VALUE(k.class) AS class,
    COUNT(*) AS instances,
    SUM(k.dur)::BIGINT AS total_dur,
    SUM(k.dur) / NULLIF(SUM(SUM(k.dur)) OVER (), 0) AS time_frac,
    AVG(k.dur) AS avg_dur,
    MEDIAN(k.dur) AS med_dur,
    MIN(k.dur) AS min_dur,
    MAX(k.dur) AS max_dur,
    QUANTILE_CONT(k.dur, 0.95) AS p95_dur,
    STDDEV_SAMP(k.dur) AS stddev_dur
FROM kernel AS k
GROUP BY k.short_name;
COMMENT ON VIEW kernel_summary IS 'Which device work takes the time, by name over all ranks.';
COMMENT ON COLUMN kernel_summary.short_name IS 'Name without return type, template and parameters.';
COMMENT ON COLUMN kernel_summary.class IS 'Class by name.';
COMMENT ON COLUMN kernel_summary.instances IS 'How often.';
COMMENT ON COLUMN kernel_summary.total_dur IS 'Sum of durations, ns.';
COMMENT ON COLUMN kernel_summary.time_frac IS 'Share of all device time, 0 to 1.';
COMMENT ON COLUMN kernel_summary.avg_dur IS 'Mean duration, ns.';
COMMENT ON COLUMN kernel_summary.med_dur IS 'Median duration, ns.';
COMMENT ON COLUMN kernel_summary.min_dur IS 'Shortest, ns.';
COMMENT ON COLUMN kernel_summary.max_dur IS 'Longest, ns.';
COMMENT ON COLUMN kernel_summary.p95_dur IS '95th percentile of the durations, ns.';
COMMENT ON COLUMN kernel_summary.stddev_dur IS 'Standard deviation of the durations, ns.';

CREATE VIEW kernel_step_summary AS
SELECT
    k.rank,
    w.step,
    k.short_name,
    ANY_VALUE(k.class) AS class,
    COUNT(*) AS instances,
    SUM(k.dur)::BIGINT AS total_dur,
    SUM(k.dur) / NULLIF(SUM(SUM(k.dur)) OVER (PARTITION BY k.rank, w.step), 0) AS time_frac
FROM kernel AS k
JOIN step_window AS w ON k.ts >= w.ts AND k.ts < w.ts + w.dur
GROUP BY k.rank, w.step, k.short_name;
COMMENT ON VIEW kernel_step_summary IS
    'Which device work takes the time on a rank in a step, by where it starts.';
COMMENT ON COLUMN kernel_step_summary.rank IS 'Rank.';
COMMENT ON COLUMN kernel_step_summary.step IS 'Step of step_window; 0 where none is recorded.';
COMMENT ON COLUMN kernel_step_summary.short_name IS 'Name, as in kernel.';
COMMENT ON COLUMN kernel_step_summary.class IS 'Class by name.';
COMMENT ON COLUMN kernel_step_summary.instances IS 'How often.';
COMMENT ON COLUMN kernel_step_summary.total_dur IS 'Sum of durations, ns.';
COMMENT ON COLUMN kernel_step_summary.time_frac IS 'Share of the device time of the rank and step, 0 to 1.';

CREATE VIEW kernel_exposure AS
WITH
hidden AS (
    SELECT
        p.trace_id,
        p.device,
        p.ts,
        COALESCE(SUM(p.dur) FILTER (p.n_compute > 0) OVER before, 0)::BIGINT AS compute_dur,
        COALESCE(
            SUM(p.dur) FILTER (p.n_compute > 0 OR p.n_comm > 0) OVER before, 0
        )::BIGINT AS busy_dur
    FROM store.device_point AS p
    WINDOW before AS (
        PARTITION BY p.trace_id, p.device ORDER BY p.ts
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
)
SELECT
    k.id,
    k.rank,
    CASE
        WHEN k.class = 9 THEN k.dur - (b.compute_dur - a.compute_dur)
        WHEN k.class IN (10, 11) THEN k.dur - (b.busy_dur - a.busy_dur)
        ELSE k.dur
    END AS exposed_dur
FROM store.kernel AS k
JOIN hidden AS a ON a.trace_id = k.trace_id AND a.device = COALESCE(k.device, 0) AND a.ts = k.ts
JOIN hidden AS b
    ON b.trace_id = k.trace_id AND b.device = COALESCE(k.device, 0) AND b.ts = k.ts + k.dur;
COMMENT ON VIEW kernel_exposure IS
    'How much of each device row nothing hides: compute hides communication, both hide copies.';
COMMENT ON COLUMN kernel_exposure.id IS 'Slice of the device row.';
COMMENT ON COLUMN kernel_exposure.rank IS 'Rank.';
COMMENT ON COLUMN kernel_exposure.exposed_dur IS
    'Part of its duration, ns; all of it for compute. Rows of a kind that overlap count each.';

CREATE VIEW store.launched AS
SELECT
    s.utid,
    s.ts,
    SUM(SUM(k.dur)) OVER run::BIGINT AS device_dur,
    SUM(SUM(k.dur) FILTER (k.class = 9)) OVER run::BIGINT AS comm_dur
FROM store.kernel AS k
JOIN store.slice AS s ON s.id = k.runtime_id
GROUP BY s.utid, s.ts
WINDOW run AS (PARTITION BY s.utid ORDER BY s.ts ROWS UNBOUNDED PRECEDING);
COMMENT ON VIEW store.launched IS 'Device time that a thread has launched up to each of its calls.';

CREATE VIEW store.exposed AS
SELECT
    s.utid,
    s.ts,
    SUM(SUM(e.exposed_dur)) OVER run::BIGINT AS exposed_dur
FROM store.kernel AS k
JOIN kernel_exposure AS e ON e.id = k.id
JOIN store.slice AS s ON s.id = k.runtime_id
WHERE k.class = 9
GROUP BY s.utid, s.ts
WINDOW run AS (PARTITION BY s.utid ORDER BY s.ts ROWS UNBOUNDED PRECEDING);
COMMENT ON VIEW store.exposed IS
    'Exposed communication that a thread has launched up to each of its calls.';

CREATE VIEW store.op_cost AS
WITH
own AS (
    SELECT
        k.op_id,
        SUM(k.dur)::BIGINT AS dur
    FROM store.kernel AS k
    WHERE k.op_id IS NOT NULL
    GROUP BY k.op_id
)
SELECT
    s.id,
    s.rank,
    s.name_id,
    s.dur,
    s.self_dur,
    COALESCE(o.dur, 0) AS device_self_dur,
    COALESCE(b.device_dur, 0) - COALESCE(a.device_dur, 0) AS device_total_dur
FROM store.slice AS s
LEFT JOIN own AS o ON o.op_id = s.id
ASOF LEFT JOIN store.launched AS a ON a.utid = s.utid AND s.ts > a.ts
ASOF LEFT JOIN store.launched AS b ON b.utid = s.utid AND GREATEST(s.ts + s.dur, s.ts + 1) > b.ts
WHERE s.cat = 'cpu_op';
COMMENT ON VIEW store.op_cost IS 'Host and device time of each operator.';

CREATE VIEW op_summary AS
SELECT
    c.rank,
    n.name,
    COUNT(*) AS calls,
    SUM(c.self_dur)::BIGINT AS cpu_self_dur,
    SUM(c.dur)::BIGINT AS cpu_total_dur,
    AVG(c.dur) AS avg_cpu_total_dur,
    SUM(c.device_self_dur)::BIGINT AS device_self_dur,
    SUM(c.device_total_dur)::BIGINT AS device_total_dur
FROM store.op_cost AS c
JOIN store.name AS n ON n.name_id = c.name_id
GROUP BY c.rank, n.name;
COMMENT ON VIEW op_summary IS 'Operators as key_averages() of the profiler shows them.';
COMMENT ON COLUMN op_summary.rank IS 'Rank.';
COMMENT ON COLUMN op_summary.name IS 'Name of the operator.';
COMMENT ON COLUMN op_summary.calls IS 'How often.';
COMMENT ON COLUMN op_summary.cpu_self_dur IS 'Host time without rows inside (operators, runtime calls), ns.';
COMMENT ON COLUMN op_summary.cpu_total_dur IS 'Host time with all inside; recursion counts twice, ns.';
COMMENT ON COLUMN op_summary.avg_cpu_total_dur IS 'Mean of it, ns.';
COMMENT ON COLUMN op_summary.device_self_dur IS
    'Device time of what it launched itself, not through another operator, ns.';
COMMENT ON COLUMN op_summary.device_total_dur IS
    'Device time of all that was launched inside it; recursion counts twice, ns.';

CREATE VIEW op_shape_summary AS
SELECT
    c.rank,
    n.name,
    o.input_dims,
    o.input_type,
    COUNT(*) AS calls,
    SUM(c.self_dur)::BIGINT AS cpu_self_dur,
    SUM(c.dur)::BIGINT AS cpu_total_dur,
    SUM(c.device_self_dur)::BIGINT AS device_self_dur,
    SUM(c.device_total_dur)::BIGINT AS device_total_dur,
    SUM(o.flops) AS flops
FROM store.op_cost AS c
JOIN store.name AS n ON n.name_id = c.name_id
JOIN store.cpu_op AS o ON o.id = c.id
GROUP BY c.rank, n.name, o.input_dims, o.input_type;
COMMENT ON VIEW op_shape_summary IS
    'Operators by their input shapes (record_shapes), as key_averages(group_by_input_shape).';
COMMENT ON COLUMN op_shape_summary.rank IS 'Rank.';
COMMENT ON COLUMN op_shape_summary.name IS 'Name of the operator.';
COMMENT ON COLUMN op_shape_summary.input_dims IS 'Input Dims, JSON; NULL when not recorded.';
COMMENT ON COLUMN op_shape_summary.input_type IS 'Input type, JSON; NULL when not recorded.';
COMMENT ON COLUMN op_shape_summary.calls IS 'How often.';
COMMENT ON COLUMN op_shape_summary.cpu_self_dur IS 'Host time, as in op_summary, ns.';
COMMENT ON COLUMN op_shape_summary.cpu_total_dur IS 'Host time with all inside, ns.';
COMMENT ON COLUMN op_shape_summary.device_self_dur IS 'Device time, as in op_summary, ns.';
COMMENT ON COLUMN op_shape_summary.device_total_dur IS 'Device time with all inside, ns.';
COMMENT ON COLUMN op_shape_summary.flops IS 'FLOPs of all calls, as in cpu_op.';

CREATE VIEW module_summary AS
WITH RECURSIVE
launched AS (
    SELECT * FROM store.launched
),
exposed AS (
    SELECT * FROM store.exposed
),
module AS (
    SELECT
        s.id,
        s.rank,
        s.name_id,
        s.utid,
        s.ts,
        s.dur,
        s.parent_id
    FROM store.slice AS s
    JOIN store.name AS n ON n.name_id = s.name_id
    WHERE s.cat = 'python_function' AND n.name LIKE 'nn.Module: %'
),
climb AS (
    SELECT
        m.id,
        m.parent_id AS at,
        NULL::BIGINT AS around
    FROM module AS m
    UNION ALL
    SELECT
        c.id,
        p.parent_id,
        x.id
    FROM climb AS c
    JOIN store.slice AS p ON p.id = c.at
    LEFT JOIN module AS x ON x.id = c.at
    WHERE c.around IS NULL
),
pair AS (
    SELECT DISTINCT
        m.rank,
        m.name_id,
        FIRST_VALUE(p.name_id) OVER (PARTITION BY m.rank, m.name_id ORDER BY m.ts, m.id) AS around_id
    FROM module AS m
    LEFT JOIN (SELECT c.id, c.around FROM climb AS c WHERE c.around IS NOT NULL) AS c ON c.id = m.id
    LEFT JOIN module AS p ON p.id = c.around
),
way AS (
    SELECT
        q.rank,
        q.name_id,
        [SUBSTR(n.name, 12)] AS names,
        q.name_id AS last_id
    FROM pair AS q
    JOIN store.name AS n ON n.name_id = q.name_id
    WHERE q.around_id IS NULL
    UNION ALL
    SELECT
        q.rank,
        q.name_id,
        LIST_APPEND(w.names, SUBSTR(n.name, 12)),
        q.name_id
    FROM way AS w
    JOIN pair AS q ON q.rank = w.rank AND q.around_id = w.last_id
    JOIN store.name AS n ON n.name_id = q.name_id
    WHERE NOT LIST_CONTAINS(w.names, SUBSTR(n.name, 12))
),
own AS (
    SELECT
        k.module_id,
        SUM(k.dur)::BIGINT AS dur
    FROM store.kernel AS k
    WHERE k.module_id IS NOT NULL
    GROUP BY k.module_id
),
backward AS (
    SELECT
        k.module_id AS id,
        SUM(k.dur) AS dur
    FROM store.kernel AS k
    JOIN module AS m ON m.id = k.module_id
    JOIN store.slice AS r ON r.id = k.runtime_id
    WHERE r.utid <> m.utid OR r.ts < m.ts OR r.ts >= m.ts + m.dur
    GROUP BY k.module_id
),
backward_within AS (
    SELECT
        b.id,
        b.dur
    FROM backward AS b
    UNION ALL
    SELECT
        c.around,
        u.dur
    FROM backward_within AS u
    JOIN climb AS c ON c.id = u.id AND c.around IS NOT NULL
),
backward_total AS (
    SELECT
        u.id,
        SUM(u.dur) AS dur
    FROM backward_within AS u
    GROUP BY u.id
)
SELECT
    m.rank,
    ANY_VALUE(ARRAY_TO_STRING(w.names, '.')) AS path,
    n.name,
    COUNT(*) AS calls,
    SUM(m.dur)::BIGINT AS cpu_total_dur,
    SUM(COALESCE(o.dur, 0))::BIGINT AS device_self_dur,
    SUM(
        COALESCE(b.device_dur, 0) - COALESCE(a.device_dur, 0) + COALESCE(t.dur, 0)
    )::BIGINT AS device_total_dur,
    SUM(COALESCE(t.dur, 0))::BIGINT AS backward_dur,
    SUM(COALESCE(f.exposed_dur, 0) - COALESCE(e.exposed_dur, 0))::BIGINT AS exposed_comm_dur
FROM module AS m
JOIN store.name AS n ON n.name_id = m.name_id
LEFT JOIN way AS w ON w.rank = m.rank AND w.name_id = m.name_id
LEFT JOIN own AS o ON o.module_id = m.id
LEFT JOIN backward_total AS t ON t.id = m.id
ASOF LEFT JOIN launched AS a ON a.utid = m.utid AND m.ts > a.ts
ASOF LEFT JOIN launched AS b ON b.utid = m.utid AND m.ts + m.dur > b.ts
ASOF LEFT JOIN exposed AS e ON e.utid = m.utid AND m.ts > e.ts
ASOF LEFT JOIN exposed AS f ON f.utid = m.utid AND m.ts + m.dur > f.ts
GROUP BY m.rank, n.name;
COMMENT ON VIEW module_summary IS
    'Which nn.Module (with_stack) launches the device time, its backward (by sequence numbers) with it.';
COMMENT ON COLUMN module_summary.rank IS 'Rank.';
COMMENT ON COLUMN module_summary.path IS 'The modules around its first call and itself, joined by dots.';
COMMENT ON COLUMN module_summary.name IS 'Name as recorded; the number tells instances of a class apart.';
COMMENT ON COLUMN module_summary.calls IS 'How often.';
COMMENT ON COLUMN module_summary.cpu_total_dur IS 'Host time with all inside, ns.';
COMMENT ON COLUMN module_summary.device_self_dur IS
    'Device time of what it launched itself, not through another module, and of the backward of that, ns.';
COMMENT ON COLUMN module_summary.device_total_dur IS
    'Device time of all launched inside it and of the backward of that, ns.';
COMMENT ON COLUMN module_summary.backward_dur IS
    'The part of device_total_dur that is backward, launched outside of its calls, ns.';
COMMENT ON COLUMN module_summary.exposed_comm_dur IS
    'Exposed part of the communication launched inside it, ns.';

CREATE VIEW annotation_summary AS
WITH
launched AS (
    SELECT * FROM store.launched
),
exposed AS (
    SELECT * FROM store.exposed
),
own AS (
    SELECT
        k.annotation_id,
        SUM(k.dur)::BIGINT AS dur
    FROM store.kernel AS k
    WHERE k.annotation_id IS NOT NULL
    GROUP BY k.annotation_id
)
SELECT
    s.rank,
    n.name,
    COUNT(*) AS calls,
    SUM(s.dur)::BIGINT AS cpu_total_dur,
    AVG(s.dur) AS avg_cpu_total_dur,
    SUM(COALESCE(o.dur, 0))::BIGINT AS device_self_dur,
    SUM(COALESCE(b.device_dur, 0) - COALESCE(a.device_dur, 0))::BIGINT AS device_total_dur,
    SUM(COALESCE(f.exposed_dur, 0) - COALESCE(e.exposed_dur, 0))::BIGINT AS exposed_comm_dur
FROM store.slice AS s
JOIN store.name AS n ON n.name_id = s.name_id
LEFT JOIN own AS o ON o.annotation_id = s.id
ASOF LEFT JOIN launched AS a ON a.utid = s.utid AND s.ts > a.ts
ASOF LEFT JOIN launched AS b ON b.utid = s.utid AND s.ts + s.dur > b.ts
ASOF LEFT JOIN exposed AS e ON e.utid = s.utid AND s.ts > e.ts
ASOF LEFT JOIN exposed AS f ON f.utid = s.utid AND s.ts + s.dur > f.ts
WHERE s.cat = 'user_annotation'
GROUP BY s.rank, n.name;
COMMENT ON VIEW annotation_summary IS 'Which annotation (record_function) launches the device time.';
COMMENT ON COLUMN annotation_summary.rank IS 'Rank.';
COMMENT ON COLUMN annotation_summary.name IS 'Name of the annotation, ProfilerStep included.';
COMMENT ON COLUMN annotation_summary.calls IS 'How often.';
COMMENT ON COLUMN annotation_summary.cpu_total_dur IS 'Host time with all inside, ns.';
COMMENT ON COLUMN annotation_summary.avg_cpu_total_dur IS 'Mean of it, ns.';
COMMENT ON COLUMN annotation_summary.device_self_dur IS
    'Device time of what was launched inside it and no annotation within; 0 for ProfilerStep, ns.';
COMMENT ON COLUMN annotation_summary.device_total_dur IS
    'Device time of all launched inside it on its thread, ns.';
COMMENT ON COLUMN annotation_summary.exposed_comm_dur IS
    'Exposed part of the communication launched inside it, ns.';

CREATE VIEW launch_summary AS
WITH
work AS (
    SELECT
        k.runtime_id,
        MIN(k.ts) AS ts,
        SUM(k.dur)::BIGINT AS dur
    FROM store.kernel AS k
    WHERE k.runtime_id IS NOT NULL
    GROUP BY k.runtime_id
)
SELECT
    r.rank,
    r.api,
    ANY_VALUE(r.kind) AS kind,
    COUNT(*) AS calls,
    SUM(r.n_gpu_events)::BIGINT AS device_rows,
    SUM(r.dur)::BIGINT AS total_dur,
    AVG(r.dur) AS avg_dur,
    MEDIAN(r.dur) AS med_dur,
    MAX(r.dur) AS max_dur,
    SUM(GREATEST(w.ts - r.ts - r.dur, 0)) FILTER (w.ts IS NOT NULL)::BIGINT AS queue_dur,
    MEDIAN(GREATEST(w.ts - r.ts - r.dur, 0)) FILTER (w.ts IS NOT NULL) AS med_queue_dur,
    AVG((w.ts - r.ts - r.dur > 20000)::INTEGER) AS queued_frac,
    SUM(w.dur)::BIGINT AS kernel_dur
FROM runtime AS r
LEFT JOIN work AS w ON w.runtime_id = r.id
GROUP BY r.rank, r.api;
COMMENT ON VIEW launch_summary IS
    'What the calls of the runtime cost: the call on the host, then the queue, then the device.';
COMMENT ON COLUMN launch_summary.rank IS 'Rank.';
COMMENT ON COLUMN launch_summary.api IS 'Name of the call.';
COMMENT ON COLUMN launch_summary.kind IS 'Kind, as in runtime.';
COMMENT ON COLUMN launch_summary.calls IS 'How many.';
COMMENT ON COLUMN launch_summary.device_rows IS 'Device rows that they launched.';
COMMENT ON COLUMN launch_summary.total_dur IS 'Sum of durations of the calls, ns.';
COMMENT ON COLUMN launch_summary.avg_dur IS 'Mean duration, ns.';
COMMENT ON COLUMN launch_summary.med_dur IS 'Median duration, ns.';
COMMENT ON COLUMN launch_summary.max_dur IS 'Longest, ns.';
COMMENT ON COLUMN launch_summary.queue_dur IS
    'Sum of the times from the end of a call to the start of its first device row, ns; NULL for calls that launch nothing.';
COMMENT ON COLUMN launch_summary.med_queue_dur IS 'Median of these times, ns.';
COMMENT ON COLUMN launch_summary.queued_frac IS
    'Share of launches whose work began more than 20 us after the call: the host is ahead there.';
COMMENT ON COLUMN launch_summary.kernel_dur IS 'Sum of durations of the device rows, ns.';

CREATE VIEW memcpy_summary AS
WITH
copied AS (
    SELECT
        k.rank,
        CASE
            WHEN k.class = 11 THEN 'memset'
            WHEN REGEXP_MATCHES(n.name, '[HDPA]to[HDPA]') THEN REGEXP_EXTRACT(n.name, '[HDPA]to[HDPA]')
            WHEN n.name LIKE '%HostToDevice%' THEN 'HtoD'
            WHEN n.name LIKE '%DeviceToHost%' THEN 'DtoH'
            WHEN n.name LIKE '%DeviceToDevice%' THEN 'DtoD'
            ELSE 'unknown'
        END AS direction,
        n.name LIKE '%Pageable%' AS is_pageable,
        k.bytes,
        k.dur,
        e.exposed_dur
    FROM store.kernel AS k
    JOIN store.name AS n ON n.name_id = k.name_id
    JOIN kernel_exposure AS e ON e.id = k.id
    WHERE k.class IN (10, 11)
)
SELECT
    c.rank,
    c.direction,
    c.is_pageable,
    COUNT(*) AS copies,
    SUM(c.bytes)::BIGINT AS bytes,
    SUM(c.dur)::BIGINT AS total_dur,
    SUM(c.bytes) / NULLIF(SUM(c.dur) FILTER (c.bytes IS NOT NULL), 0) AS gbps,
    SUM(c.exposed_dur)::BIGINT AS exposed_dur
FROM copied AS c
GROUP BY c.rank, c.direction, c.is_pageable;
COMMENT ON VIEW memcpy_summary IS 'Copies and memsets by direction.';
COMMENT ON COLUMN memcpy_summary.rank IS 'Rank.';
COMMENT ON COLUMN memcpy_summary.direction IS 'HtoD, DtoH, DtoD, PtoP, memset or unknown.';
COMMENT ON COLUMN memcpy_summary.is_pageable IS 'Host memory that is not pinned, as its name says.';
COMMENT ON COLUMN memcpy_summary.copies IS 'How many.';
COMMENT ON COLUMN memcpy_summary.bytes IS 'Bytes in all; NULL when not recorded.';
COMMENT ON COLUMN memcpy_summary.total_dur IS 'Sum of durations, ns.';
COMMENT ON COLUMN memcpy_summary.gbps IS 'Bytes over durations, GB/s (1e9).';
COMMENT ON COLUMN memcpy_summary.exposed_dur IS
    'Part in which neither compute nor communication ran on the device, ns.';

CREATE VIEW phase_summary AS
WITH
device AS (
    SELECT
        k.rank,
        w.step,
        store.phase_name(k.phase) AS phase,
        COUNT(*) AS device_rows,
        COALESCE(SUM(k.dur) FILTER (k.class NOT IN (9, 10, 11)), 0)::BIGINT AS compute_dur,
        COALESCE(SUM(k.dur) FILTER (k.class = 9), 0)::BIGINT AS comm_dur,
        COALESCE(SUM(e.exposed_dur) FILTER (k.class = 9), 0)::BIGINT AS exposed_comm_dur,
        COALESCE(SUM(k.dur) FILTER (k.class IN (10, 11)), 0)::BIGINT AS memcpy_dur
    FROM store.kernel AS k
    JOIN kernel_exposure AS e ON e.id = k.id
    JOIN step_window AS w ON k.ts >= w.ts AND k.ts < w.ts + w.dur
    GROUP BY k.rank, w.step, store.phase_name(k.phase)
),
host AS (
    SELECT
        s.rank,
        w.step,
        store.phase_name(o.phase) AS phase,
        COUNT(*) AS ops,
        SUM(s.self_dur)::BIGINT AS cpu_self_dur
    FROM store.cpu_op AS o
    JOIN store.slice AS s ON s.id = o.id
    JOIN step_window AS w ON s.ts >= w.ts AND s.ts < w.ts + w.dur
    GROUP BY s.rank, w.step, store.phase_name(o.phase)
)
SELECT
    COALESCE(d.rank, h.rank) AS rank,
    COALESCE(d.step, h.step) AS step,
    COALESCE(d.phase, h.phase) AS phase,
    COALESCE(h.ops, 0) AS ops,
    COALESCE(h.cpu_self_dur, 0) AS cpu_self_dur,
    COALESCE(d.device_rows, 0) AS device_rows,
    COALESCE(d.compute_dur, 0) AS compute_dur,
    COALESCE(d.comm_dur, 0) AS comm_dur,
    COALESCE(d.exposed_comm_dur, 0) AS exposed_comm_dur,
    COALESCE(d.memcpy_dur, 0) AS memcpy_dur
FROM device AS d
FULL JOIN host AS h ON h.rank = d.rank AND h.step = d.step AND h.phase = d.phase;
COMMENT ON VIEW phase_summary IS
    'Forward, backward and optimizer in each step: sums over operators and device rows that start in it.';
COMMENT ON COLUMN phase_summary.rank IS 'Rank.';
COMMENT ON COLUMN phase_summary.step IS 'Step of step_window; 0 where none is recorded.';
COMMENT ON COLUMN phase_summary.phase IS 'forward, backward, optimizer or unknown.';
COMMENT ON COLUMN phase_summary.ops IS 'Operators on the host.';
COMMENT ON COLUMN phase_summary.cpu_self_dur IS 'Their host time without rows inside, ns.';
COMMENT ON COLUMN phase_summary.device_rows IS 'Device rows.';
COMMENT ON COLUMN phase_summary.compute_dur IS 'Sum of compute, ns.';
COMMENT ON COLUMN phase_summary.comm_dur IS 'Sum of communication, ns.';
COMMENT ON COLUMN phase_summary.exposed_comm_dur IS 'Its part that compute does not hide, ns.';
COMMENT ON COLUMN phase_summary.memcpy_dur IS 'Sum of copies and memsets, ns.';

CREATE VIEW python_hot AS
SELECT
    s.rank,
    n.name,
    COUNT(*) AS calls,
    SUM(s.self_dur)::BIGINT AS self_dur,
    SUM(s.self_dur) / NULLIF(SUM(SUM(s.self_dur)) OVER (PARTITION BY s.rank), 0) AS self_frac,
    SUM(s.dur)::BIGINT AS total_dur,
    n.name LIKE 'nn.Module: %' AS is_module
FROM store.slice AS s
JOIN store.name AS n ON n.name_id = s.name_id
WHERE s.cat = 'python_function'
GROUP BY s.rank, n.name;
COMMENT ON VIEW python_hot IS 'Python frames (with_stack) by the time spent in themselves.';
COMMENT ON COLUMN python_hot.rank IS 'Rank.';
COMMENT ON COLUMN python_hot.name IS 'Frame: file, line and function.';
COMMENT ON COLUMN python_hot.calls IS 'How often.';
COMMENT ON COLUMN python_hot.self_dur IS 'Time without frames, operators and calls inside, ns.';
COMMENT ON COLUMN python_hot.self_frac IS 'Share of the self time of all frames of the rank, 0 to 1.';
COMMENT ON COLUMN python_hot.total_dur IS 'Time with all inside; recursion counts twice, ns.';
COMMENT ON COLUMN python_hot.is_module IS 'The call of an nn.Module.';

CREATE VIEW memory_peak AS
WITH
peak AS (
    SELECT
        e.rank,
        e.device_type,
        e.device,
        MAX(e.total_allocated)::BIGINT AS peak_bytes,
        ARG_MAX(e.ts, e.total_allocated) AS ts,
        ARG_MAX(COALESCE(e.op_id, -1), e.total_allocated) AS op_id,
        MAX(e.total_reserved)::BIGINT AS peak_reserved_bytes,
        COUNT(*) FILTER (e.bytes > 0) AS allocations,
        COALESCE(SUM(e.bytes) FILTER (e.bytes > 0), 0)::BIGINT AS allocated_bytes
    FROM store.memory_event AS e
    GROUP BY e.rank, e.device_type, e.device
)
SELECT
    p.rank,
    p.device_type,
    p.device,
    p.peak_bytes,
    p.ts,
    NULLIF(p.op_id, -1) AS op_id,
    n.name AS op,
    p.peak_reserved_bytes,
    p.allocations,
    p.allocated_bytes
FROM peak AS p
LEFT JOIN store.slice AS s ON s.id = p.op_id
LEFT JOIN store.name AS n ON n.name_id = s.name_id;
COMMENT ON VIEW memory_peak IS 'The most memory in use (profile_memory), when, and in which operator.';
COMMENT ON COLUMN memory_peak.rank IS 'Rank.';
COMMENT ON COLUMN memory_peak.device_type IS 'Device Type, as c10 numbers it: 0 CPU, 1 CUDA.';
COMMENT ON COLUMN memory_peak.device IS 'Device number.';
COMMENT ON COLUMN memory_peak.peak_bytes IS 'Most bytes allocated at once.';
COMMENT ON COLUMN memory_peak.ts IS 'When, ns after the run''s origin, on the common clock.';
COMMENT ON COLUMN memory_peak.op_id IS 'Slice of the operator that allocated then.';
COMMENT ON COLUMN memory_peak.op IS 'Its name.';
COMMENT ON COLUMN memory_peak.peak_reserved_bytes IS 'Most bytes that the allocator held.';
COMMENT ON COLUMN memory_peak.allocations IS 'How many allocations.';
COMMENT ON COLUMN memory_peak.allocated_bytes IS 'Bytes of all allocations together.';

CREATE VIEW counter_summary AS
WITH
held AS (
    SELECT
        c.rank,
        c.name,
        c.device,
        c.ts,
        c.value,
        LEAD(c.ts) OVER (PARTITION BY c.trace_id, c.name, c.device ORDER BY c.ts) - c.ts AS dur
    FROM store.counter AS c
)
SELECT
    h.rank,
    h.name,
    h.device,
    COUNT(*) AS samples,
    MIN(h.value) AS min_value,
    COALESCE(SUM(h.value * h.dur) / NULLIF(SUM(h.dur), 0), AVG(h.value)) AS avg_value,
    MAX(h.value) AS max_value,
    ARG_MAX(h.ts, h.value) AS max_ts
FROM held AS h
GROUP BY h.rank, h.name, h.device;
COMMENT ON VIEW counter_summary IS 'Counters in short.';
COMMENT ON COLUMN counter_summary.rank IS 'Rank.';
COMMENT ON COLUMN counter_summary.name IS 'Name of the counter.';
COMMENT ON COLUMN counter_summary.device IS 'Device number; NULL when not told.';
COMMENT ON COLUMN counter_summary.samples IS 'How many.';
COMMENT ON COLUMN counter_summary.min_value IS 'Least.';
COMMENT ON COLUMN counter_summary.avg_value IS 'Mean over time: a sample holds until the next one.';
COMMENT ON COLUMN counter_summary.max_value IS 'Most.';
COMMENT ON COLUMN counter_summary.max_ts IS 'When, ns after the run''s origin, on the common clock.';

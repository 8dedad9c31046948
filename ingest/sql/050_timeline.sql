-- Where device time went: states, gaps and their causes, queues, overlap. All times are ns.

CREATE VIEW gpu_segment AS
SELECT
    p.rank,
    p.device,
    p.step,
    p.ts,
    p.dur,
    CASE
        WHEN p.n_compute > 0 THEN 'compute'
        WHEN p.n_comm > 0 THEN 'exposed_comm'
        WHEN p.n_copying > 0 THEN 'exposed_memcpy'
        ELSE 'idle'
    END AS state,
    p.n_comm > 0 AS has_comm,
    p.n_comm > 0 AND p.n_comm = p.n_waiting AS only_waits
FROM store.device_point AS p
WHERE p.dur > 0;
COMMENT ON VIEW gpu_segment IS
    'What a device did at each moment: compute before communication before copies before idle.';
COMMENT ON COLUMN gpu_segment.rank IS 'Rank.';
COMMENT ON COLUMN gpu_segment.device IS 'Device number.';
COMMENT ON COLUMN gpu_segment.step IS 'Step of step_window; NULL before the first and after the last.';
COMMENT ON COLUMN gpu_segment.ts IS 'Start, ns after the run''s origin, on the common clock.';
COMMENT ON COLUMN gpu_segment.dur IS 'Duration, ns.';
COMMENT ON COLUMN gpu_segment.state IS 'compute, exposed_comm, exposed_memcpy (with memsets) or idle.';
COMMENT ON COLUMN gpu_segment.has_comm IS 'Communication runs, hidden or not.';
COMMENT ON COLUMN gpu_segment.only_waits IS
    'All communication that runs waits for other ranks.';

CREATE VIEW gpu_timeline AS
WITH
unlinked AS (
    SELECT
        k.rank,
        COALESCE(k.device, 0) AS device,
        w.step,
        SUM(LEAST(k.ts + k.dur, w.ts + w.dur) - GREATEST(k.ts, w.ts))::BIGINT AS dur
    FROM store.kernel AS k
    JOIN step_window AS w ON k.ts < w.ts + w.dur AND k.ts + k.dur > w.ts
    WHERE k.runtime_id IS NULL
    GROUP BY k.rank, COALESCE(k.device, 0), w.step
),
summed AS (
    SELECT
        g.rank,
        g.device,
        g.step,
        MIN(g.ts) AS ts,
        SUM(g.dur)::BIGINT AS total_dur,
        COALESCE(SUM(g.dur) FILTER (g.state = 'compute'), 0)::BIGINT AS compute_dur,
        COALESCE(SUM(g.dur) FILTER (g.state = 'exposed_comm'), 0)::BIGINT AS exposed_comm_dur,
        COALESCE(SUM(g.dur) FILTER (g.state = 'exposed_memcpy'), 0)::BIGINT AS exposed_memcpy_dur,
        COALESCE(SUM(g.dur) FILTER (g.state = 'idle'), 0)::BIGINT AS idle_dur,
        COALESCE(
            SUM(g.dur) FILTER (g.state = 'exposed_comm' AND g.only_waits), 0
        )::BIGINT AS exposed_wait_dur,
        COALESCE(SUM(g.dur) FILTER (g.has_comm), 0)::BIGINT AS comm_dur
    FROM gpu_segment AS g
    WHERE g.step IS NOT NULL
    GROUP BY g.rank, g.device, g.step
)
SELECT
    s.rank,
    s.device,
    s.step,
    s.ts,
    s.total_dur,
    s.compute_dur,
    s.exposed_comm_dur,
    s.exposed_memcpy_dur,
    s.idle_dur,
    s.exposed_wait_dur,
    s.comm_dur,
    (s.comm_dur - s.exposed_comm_dur) / NULLIF(s.comm_dur, 0) AS hidden_comm_frac,
    COALESCE(u.dur, 0) AS unlinked_dur
FROM summed AS s
LEFT JOIN unlinked AS u ON u.rank = s.rank AND u.device = s.device AND u.step = s.step
ORDER BY s.rank, s.device, s.step;
COMMENT ON VIEW gpu_timeline IS
    'Where device time went in each step; compute, exposed_comm, exposed_memcpy and idle add up to total. Ranks without device work have no row.';
COMMENT ON COLUMN gpu_timeline.rank IS 'Rank.';
COMMENT ON COLUMN gpu_timeline.device IS 'Device number.';
COMMENT ON COLUMN gpu_timeline.step IS 'Step of step_window; 0 where none is recorded.';
COMMENT ON COLUMN gpu_timeline.ts IS 'Start of the step, ns after the run''s origin, on the common clock.';
COMMENT ON COLUMN gpu_timeline.total_dur IS 'The step, the same for all ranks, ns.';
COMMENT ON COLUMN gpu_timeline.compute_dur IS 'A compute kernel runs, ns.';
COMMENT ON COLUMN gpu_timeline.exposed_comm_dur IS
    'Communication (waiting included) and no compute runs, ns.';
COMMENT ON COLUMN gpu_timeline.exposed_memcpy_dur IS
    'A copy or memset, no compute and no communication runs, ns.';
COMMENT ON COLUMN gpu_timeline.idle_dur IS 'Nothing runs, ns.';
COMMENT ON COLUMN gpu_timeline.exposed_wait_dur IS
    'Part of exposed_comm_dur in which the device only waits for other ranks, ns.';
COMMENT ON COLUMN gpu_timeline.comm_dur IS 'Communication runs, hidden or not, ns.';
COMMENT ON COLUMN gpu_timeline.hidden_comm_frac IS 'Share of comm_dur under compute, 0 to 1.';
COMMENT ON COLUMN gpu_timeline.unlinked_dur IS
    'Sum of device work whose launching call is not known, ns.';

CREATE VIEW step_breakdown AS
WITH
named AS (
    SELECT n.name_id
    FROM store.name AS n
    WHERE n.name LIKE '%DataLoader%'
),
row_of_kind AS (
    SELECT
        k.trace_id,
        k.rank,
        k.ts,
        k.dur,
        CASE k.class WHEN 9 THEN 2 WHEN 10 THEN 3 WHEN 11 THEN 4 ELSE 1 END AS kind
    FROM store.kernel AS k
    UNION ALL
    SELECT s.trace_id, s.rank, s.ts, s.dur, 2
    FROM store.collective_rank AS m
    JOIN store.collective AS c ON c.coll_id = m.coll_id
    JOIN store.slice AS s ON s.id = m.kernel_id
    WHERE c.on_host
    UNION ALL
    SELECT s.trace_id, s.rank, s.ts, s.dur, 5
    FROM store.runtime AS r
    JOIN store.slice AS s ON s.id = r.id
    UNION ALL
    SELECT s.trace_id, s.rank, s.ts, s.dur, CASE WHEN n.name_id IS NULL THEN 7 ELSE 6 END
    FROM store.slice AS s
    LEFT JOIN store.cpu_op AS around ON around.id = s.parent_id
    LEFT JOIN named AS n ON n.name_id = s.name_id
    WHERE (s.cat = 'cpu_op' AND around.id IS NULL)
        OR (n.name_id IS NOT NULL AND s.cat IN ('cpu_op', 'user_annotation', 'python_function'))
),
edge AS (
    SELECT
        w.trace_id,
        w.rank,
        w.ts,
        w.kind,
        1 AS change,
        NULL::BIGINT AS step
    FROM row_of_kind AS w
    UNION ALL
    SELECT w.trace_id, w.rank, w.ts + w.dur, w.kind, -1, NULL
    FROM row_of_kind AS w
    UNION ALL
    SELECT t.trace_id, t.rank, m.ts, 0, 0, m.step
    FROM store.trace AS t
    CROSS JOIN store.step_mark AS m
),
point AS (
    SELECT
        e.trace_id,
        e.rank,
        e.ts,
        SUM(e.change) FILTER (e.kind = 1) AS kernel,
        SUM(e.change) FILTER (e.kind = 2) AS communication,
        SUM(e.change) FILTER (e.kind = 3) AS memcpy,
        SUM(e.change) FILTER (e.kind = 4) AS memset,
        SUM(e.change) FILTER (e.kind = 5) AS runtime,
        SUM(e.change) FILTER (e.kind = 6) AS dataloader,
        SUM(e.change) FILTER (e.kind = 7) AS cpu_exec,
        MAX(e.step) AS step
    FROM edge AS e
    GROUP BY e.trace_id, e.rank, e.ts
),
swept AS (
    SELECT
        p.rank,
        NULLIF(LAST_VALUE(p.step IGNORE NULLS) OVER run, -1) AS step,
        COALESCE(LEAD(p.ts) OVER run - p.ts, 0) AS dur,
        CASE
            WHEN SUM(p.kernel) OVER run > 0 THEN 'kernel'
            WHEN SUM(p.communication) OVER run > 0 THEN 'communication'
            WHEN SUM(p.memcpy) OVER run > 0 THEN 'memcpy'
            WHEN SUM(p.memset) OVER run > 0 THEN 'memset'
            WHEN SUM(p.runtime) OVER run > 0 THEN 'runtime'
            WHEN SUM(p.dataloader) OVER run > 0 THEN 'dataloader'
            WHEN SUM(p.cpu_exec) OVER run > 0 THEN 'cpu_exec'
            ELSE 'other'
        END AS kind
    FROM point AS p
    WINDOW run AS (PARTITION BY p.trace_id, p.rank ORDER BY p.ts ROWS UNBOUNDED PRECEDING)
)
SELECT
    s.rank,
    s.step,
    SUM(s.dur)::BIGINT AS total_dur,
    COALESCE(SUM(s.dur) FILTER (s.kind = 'kernel'), 0)::BIGINT AS kernel_dur,
    COALESCE(SUM(s.dur) FILTER (s.kind = 'communication'), 0)::BIGINT AS communication_dur,
    COALESCE(SUM(s.dur) FILTER (s.kind = 'memcpy'), 0)::BIGINT AS memcpy_dur,
    COALESCE(SUM(s.dur) FILTER (s.kind = 'memset'), 0)::BIGINT AS memset_dur,
    COALESCE(SUM(s.dur) FILTER (s.kind = 'runtime'), 0)::BIGINT AS runtime_dur,
    COALESCE(SUM(s.dur) FILTER (s.kind = 'dataloader'), 0)::BIGINT AS dataloader_dur,
    COALESCE(SUM(s.dur) FILTER (s.kind = 'cpu_exec'), 0)::BIGINT AS cpu_exec_dur,
    COALESCE(SUM(s.dur) FILTER (s.kind = 'other'), 0)::BIGINT AS other_dur
FROM swept AS s
WHERE s.step IS NOT NULL
GROUP BY s.rank, s.step
ORDER BY s.rank, s.step;
COMMENT ON VIEW step_breakdown IS
    'Each moment of a step under the first that runs of: kernel, communication, memcpy, memset, runtime call, data loader, operator, other; they add up to total.';
COMMENT ON COLUMN step_breakdown.rank IS 'Rank.';
COMMENT ON COLUMN step_breakdown.step IS 'Step of step_window; 0 where none is recorded.';
COMMENT ON COLUMN step_breakdown.total_dur IS 'The step, ns.';
COMMENT ON COLUMN step_breakdown.kernel_dur IS 'A compute kernel runs on any device of the rank, ns.';
COMMENT ON COLUMN step_breakdown.communication_dur IS
    'Communication runs, on a device or on the host (gloo, MPI), ns.';
COMMENT ON COLUMN step_breakdown.memcpy_dur IS 'A copy runs, ns.';
COMMENT ON COLUMN step_breakdown.memset_dur IS 'A memset runs, ns.';
COMMENT ON COLUMN step_breakdown.runtime_dur IS 'The devices are idle and a runtime call runs, ns.';
COMMENT ON COLUMN step_breakdown.dataloader_dur IS 'Only the data loader runs, ns.';
COMMENT ON COLUMN step_breakdown.cpu_exec_dur IS 'Only operators of the host run, ns.';
COMMENT ON COLUMN step_breakdown.other_dur IS
    'None of these: Python between operators, waiting, or nothing at all, ns.';

CREATE VIEW store.host_point AS
WITH
host AS (
    SELECT
        s.utid,
        s.ts,
        s.ts + s.dur AS end_ts,
        s.depth,
        s.id,
        s.parent_id
    FROM store.slice AS s
    JOIN store.thread AS h ON h.utid = s.utid
    WHERE h.role <> 'stream' AND s.cat NOT IN ('Trace', 'overhead', 'gpu_user_annotation', 'cuda_sync')
),
change AS (
    SELECT
        h.utid,
        h.ts,
        h.depth AS sorting,
        h.id AS slice_id
    FROM host AS h
    UNION ALL
    SELECT h.utid, h.end_ts, -1 - h.depth, h.parent_id
    FROM host AS h
)
SELECT
    c.utid,
    c.ts,
    c.slice_id
FROM change AS c
QUALIFY ROW_NUMBER() OVER (PARTITION BY c.utid, c.ts ORDER BY c.sorting DESC) = 1;
COMMENT ON VIEW store.host_point IS
    'The innermost host slice from each moment of a thread on; NULL where it is silent.';

CREATE VIEW gpu_idle AS
WITH
gap AS (
    SELECT
        p.trace_id,
        p.rank,
        p.device,
        p.step,
        p.ts,
        p.dur,
        p.ts + p.dur AS end_ts,
        p.ts + p.dur // 2 AS middle_ts
    FROM store.device_point AS p
    WHERE p.dur > 0 AND p.n_compute = 0 AND p.n_comm = 0 AND p.n_copying = 0
),
beginning AS (
    SELECT
        k.trace_id,
        COALESCE(k.device, 0) AS device,
        k.ts,
        MIN(k.id) AS id
    FROM store.kernel AS k
    GROUP BY k.trace_id, COALESCE(k.device, 0), k.ts
),
ending AS (
    SELECT
        k.trace_id,
        COALESCE(k.device, 0) AS device,
        k.ts + k.dur AS ts,
        MAX(k.id) AS id
    FROM store.kernel AS k
    GROUP BY k.trace_id, COALESCE(k.device, 0), k.ts + k.dur
),
running AS (
    SELECT
        s.trace_id,
        'sync' AS kind,
        s.ts,
        s.ts + s.dur AS end_ts
    FROM store.runtime AS r
    JOIN store.slice AS s ON s.id = r.id
    WHERE r.kind IN (5, 6, 7)
    UNION ALL
    SELECT s.trace_id, 'dataloader', s.ts, s.ts + s.dur
    FROM store.slice AS s
    JOIN store.name AS n ON n.name_id = s.name_id
    WHERE n.name LIKE '%DataLoader%' AND s.cat IN ('cpu_op', 'user_annotation', 'python_function')
    UNION ALL
    SELECT s.trace_id, 'host_comm', s.ts, s.ts + s.dur
    FROM store.collective_rank AS m
    JOIN store.collective AS c ON c.coll_id = m.coll_id
    JOIN store.slice AS s ON s.id = m.kernel_id
    WHERE c.on_host
),
reach AS (
    SELECT
        r.trace_id,
        r.kind,
        r.ts,
        MAX(MAX(r.end_ts)) OVER (
            PARTITION BY r.trace_id, r.kind ORDER BY r.ts ROWS UNBOUNDED PRECEDING
        ) AS end_ts
    FROM running AS r
    GROUP BY r.trace_id, r.kind, r.ts
),
main_thread AS (
    SELECT
        h.trace_id,
        MIN(h.utid) AS utid
    FROM store.thread AS h
    WHERE h.role = 'main'
    GROUP BY h.trace_id
),
placed AS (
    SELECT
        g.*,
        before.id AS prev_id,
        after.id AS next_id,
        COALESCE(synced.end_ts >= g.ts, FALSE) AS in_sync,
        COALESCE(loaded.end_ts > g.middle_ts, FALSE) AS in_dataloader,
        COALESCE(met.end_ts > g.middle_ts, FALSE) AS in_host_comm
    FROM gap AS g
    ASOF LEFT JOIN ending AS before
        ON before.trace_id = g.trace_id AND before.device = g.device AND g.ts >= before.ts
    ASOF LEFT JOIN beginning AS after
        ON after.trace_id = g.trace_id AND after.device = g.device AND g.end_ts <= after.ts
    ASOF LEFT JOIN (SELECT * FROM reach WHERE kind = 'sync') AS synced
        ON synced.trace_id = g.trace_id AND g.ts >= synced.ts
    ASOF LEFT JOIN (SELECT * FROM reach WHERE kind = 'dataloader') AS loaded
        ON loaded.trace_id = g.trace_id AND g.middle_ts >= loaded.ts
    ASOF LEFT JOIN (SELECT * FROM reach WHERE kind = 'host_comm') AS met
        ON met.trace_id = g.trace_id AND g.middle_ts >= met.ts
),
called AS (
    SELECT
        p.*,
        call.ts AS call_ts,
        call.ts + call.dur AS call_end_ts,
        COALESCE(call.utid, m.utid) AS utid,
        COALESCE(
            a.runtime_id = b.runtime_id AND (r.kind = 2 OR r.n_gpu_events > 2), FALSE
        ) AS in_graph,
        COALESCE(
            before_call.ts + before_call.dur >= p.ts
            AND (bn.name LIKE '%DtoH%' OR bn.name LIKE '%DeviceToHost%'), FALSE
        ) AS in_copy
    FROM placed AS p
    LEFT JOIN store.kernel AS a ON a.id = p.next_id
    LEFT JOIN store.kernel AS b ON b.id = p.prev_id
    LEFT JOIN store.name AS bn ON bn.name_id = b.name_id
    LEFT JOIN store.slice AS call ON call.id = a.runtime_id
    LEFT JOIN store.slice AS before_call ON before_call.id = b.runtime_id
    LEFT JOIN store.runtime AS r ON r.id = a.runtime_id
    LEFT JOIN main_thread AS m ON m.trace_id = p.trace_id
)
SELECT
    c.rank,
    c.device,
    c.step,
    c.ts,
    c.dur,
    CASE
        WHEN c.in_graph THEN 'graph_gap'
        WHEN c.call_ts IS NULL THEN 'unknown'
        WHEN c.call_ts < c.ts AND (c.dur <= 10000 OR c.call_end_ts > c.ts) THEN 'launch_overhead'
        WHEN c.in_host_comm THEN 'comm_wait'
        WHEN c.call_ts < c.ts THEN 'unknown'
        WHEN c.end_ts - c.call_end_ts > 100000 AND 2 * (c.end_ts - c.call_end_ts) >= c.dur THEN 'unknown'
        WHEN 2 * (c.end_ts - c.call_ts) >= c.dur THEN 'launch_overhead'
        WHEN c.in_dataloader THEN 'dataloader'
        WHEN c.in_sync OR c.in_copy THEN 'sync_drain'
        ELSE 'host_late'
    END AS cause,
    c.prev_id AS prev_kernel_id,
    c.next_id AS next_kernel_id,
    h.slice_id AS cpu_slice_id
FROM called AS c
ASOF LEFT JOIN store.host_point AS h ON h.utid = c.utid AND c.middle_ts >= h.ts
ORDER BY c.rank, c.device, c.ts;
COMMENT ON VIEW gpu_idle IS
    'Each gap of a device and why; the gaps of a step add up to idle_dur of gpu_timeline.';
COMMENT ON COLUMN gpu_idle.rank IS 'Rank.';
COMMENT ON COLUMN gpu_idle.device IS 'Device number.';
COMMENT ON COLUMN gpu_idle.step IS 'Step of step_window; NULL before the first and after the last.';
COMMENT ON COLUMN gpu_idle.ts IS 'Start, ns after the run''s origin, on the common clock.';
COMMENT ON COLUMN gpu_idle.dur IS 'Duration, ns.';
COMMENT ON COLUMN gpu_idle.cause IS
    'graph_gap: inside a graph launch. launch_overhead: launching took half of it, or it is at most 10 us and the work was queued. comm_wait: a host-side collective ran. dataloader, sync_drain (a synchronisation emptied the device), host_late: the call came late. unknown: none of these.';
COMMENT ON COLUMN gpu_idle.prev_kernel_id IS 'Device row that ended before it.';
COMMENT ON COLUMN gpu_idle.next_kernel_id IS 'Device row that began after it.';
COMMENT ON COLUMN gpu_idle.cpu_slice_id IS
    'Innermost host slice at its middle, on the thread that launched the next row.';

CREATE VIEW queue_depth AS
WITH
work AS (
    SELECT
        k.runtime_id,
        k.rank,
        MIN(COALESCE(k.device, 0)) AS device,
        ARG_MIN(k.stream, k.ts) AS stream,
        MIN(k.ts) AS start_ts
    FROM store.kernel AS k
    WHERE k.runtime_id IS NOT NULL
    GROUP BY k.runtime_id, k.rank
),
edge AS (
    SELECT
        w.runtime_id,
        w.rank,
        w.device,
        w.stream,
        s.ts,
        s.dur,
        1 AS change
    FROM work AS w
    JOIN store.slice AS s ON s.id = w.runtime_id
    UNION ALL
    SELECT w.runtime_id, w.rank, w.device, w.stream, w.start_ts, NULL, -1
    FROM work AS w
),
counted AS (
    SELECT
        e.*,
        SUM(e.change) OVER (
            PARTITION BY e.rank ORDER BY e.ts, e.change DESC, e.runtime_id ROWS UNBOUNDED PRECEDING
        )::BIGINT AS depth,
        SUM(e.change) OVER (
            PARTITION BY e.rank, e.device, e.stream ORDER BY e.ts, e.change DESC, e.runtime_id
            ROWS UNBOUNDED PRECEDING
        )::BIGINT AS stream_depth
    FROM edge AS e
)
SELECT
    c.runtime_id,
    c.rank,
    c.device,
    c.stream,
    c.ts,
    c.dur,
    c.depth,
    c.stream_depth,
    c.depth >= 1000 AS is_full
FROM counted AS c
WHERE c.change = 1
ORDER BY c.rank, c.ts;
COMMENT ON VIEW queue_depth IS
    'How far the host is ahead at each launch. Work launched before the recording is not in it.';
COMMENT ON COLUMN queue_depth.runtime_id IS 'Slice of the launching call.';
COMMENT ON COLUMN queue_depth.rank IS 'Rank.';
COMMENT ON COLUMN queue_depth.device IS 'Device number.';
COMMENT ON COLUMN queue_depth.stream IS 'Stream.';
COMMENT ON COLUMN queue_depth.ts IS 'Start of the call, ns after the run''s origin, on the common clock.';
COMMENT ON COLUMN queue_depth.dur IS 'Duration of the call, ns.';
COMMENT ON COLUMN queue_depth.depth IS
    'Launches of the rank whose work has not started, this one included; a graph is one.';
COMMENT ON COLUMN queue_depth.stream_depth IS 'The same of its stream alone.';
COMMENT ON COLUMN queue_depth.is_full IS
    'depth is 1,000 or more: near the driver''s limit (about 1,024) launches block.';

CREATE VIEW overlap_matrix AS
WITH
reached AS (
    SELECT
        k.rank,
        COALESCE(k.device, 0) AS device,
        k.class,
        k.ts,
        k.ts + k.dur AS end_ts,
        MAX(k.ts + k.dur) OVER (
            PARTITION BY k.rank, k.device, k.class ORDER BY k.ts
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reach
    FROM store.kernel AS k
    WHERE k.dur > 0
),
numbered AS (
    SELECT
        r.*,
        SUM((r.reach IS NULL OR r.ts > r.reach)::BIGINT) OVER (
            PARTITION BY r.rank, r.device, r.class ORDER BY r.ts ROWS UNBOUNDED PRECEDING
        ) AS island
    FROM reached AS r
),
busy AS (
    SELECT
        n.rank,
        n.device,
        1::BIGINT << n.class AS bit,
        MIN(n.ts) AS ts,
        MAX(n.end_ts) AS end_ts
    FROM numbered AS n
    GROUP BY n.rank, n.device, n.class, n.island
),
edge AS (
    SELECT
        b.rank,
        b.device,
        b.ts,
        b.bit AS change,
        NULL::BIGINT AS step
    FROM busy AS b
    UNION ALL
    SELECT b.rank, b.device, b.end_ts, -b.bit, NULL
    FROM busy AS b
    UNION ALL
    SELECT d.rank, d.device, m.ts, 0, m.step
    FROM (SELECT DISTINCT b.rank, b.device FROM busy AS b) AS d
    CROSS JOIN store.step_mark AS m
),
point AS (
    SELECT
        e.rank,
        e.device,
        e.ts,
        SUM(e.change)::BIGINT AS change,
        MAX(e.step) AS step
    FROM edge AS e
    GROUP BY e.rank, e.device, e.ts
),
swept AS (
    SELECT
        p.rank,
        p.device,
        NULLIF(LAST_VALUE(p.step IGNORE NULLS) OVER run, -1) AS step,
        SUM(p.change) OVER run::BIGINT AS classes,
        COALESCE(LEAD(p.ts) OVER run - p.ts, 0) AS dur
    FROM point AS p
    WINDOW run AS (PARTITION BY p.rank, p.device ORDER BY p.ts ROWS UNBOUNDED PRECEDING)
),
mixed AS (
    SELECT
        s.rank,
        s.device,
        s.step,
        s.classes,
        SUM(s.dur)::BIGINT AS dur
    FROM swept AS s
    WHERE s.step IS NOT NULL AND s.classes > 0
    GROUP BY s.rank, s.device, s.step, s.classes
),
paired AS (
    SELECT
        m.rank,
        m.device,
        m.step,
        a.code AS a,
        b.code AS b,
        SUM(m.dur)::BIGINT AS dur
    FROM mixed AS m
    JOIN RANGE(12) AS a (code) ON m.classes & (1::BIGINT << a.code) > 0
    JOIN RANGE(12) AS b (code) ON m.classes & (1::BIGINT << b.code) > 0
    GROUP BY m.rank, m.device, m.step, a.code, b.code
)
SELECT
    p.rank,
    p.device,
    p.step,
    store.class_name(p.a) AS class_a,
    store.class_name(p.b) AS class_b,
    p.dur AS overlap_dur,
    whole.dur AS class_a_dur,
    p.dur / whole.dur AS overlap_frac
FROM paired AS p
JOIN paired AS whole
    ON whole.rank = p.rank AND whole.device = p.device AND whole.step = p.step
    AND whole.a = p.a AND whole.b = p.a
WHERE p.a <> p.b
ORDER BY p.rank, p.device, p.step, class_a, class_b;
COMMENT ON VIEW overlap_matrix IS 'What ran beside what on a device; pairs that never did have no row.';
COMMENT ON COLUMN overlap_matrix.rank IS 'Rank.';
COMMENT ON COLUMN overlap_matrix.device IS 'Device number.';
COMMENT ON COLUMN overlap_matrix.step IS 'Step of step_window; 0 where none is recorded.';
COMMENT ON COLUMN overlap_matrix.class_a IS 'Class, as in kernel.';
COMMENT ON COLUMN overlap_matrix.class_b IS 'Another class.';
COMMENT ON COLUMN overlap_matrix.overlap_dur IS 'Time in which both ran, ns.';
COMMENT ON COLUMN overlap_matrix.class_a_dur IS 'Time in which class_a ran, ns.';
COMMENT ON COLUMN overlap_matrix.overlap_frac IS 'overlap_dur over class_a_dur, 0 to 1.';

-- What the replay of the unchanged run says. Ingest leaves these tables empty; the first query that
-- asks for one of their views builds the graph and fills them, all in one transaction. To fill them
-- anew, this file runs again: it replaces what is there.

CREATE OR REPLACE TABLE store.lane (
    lane_id BIGINT, kind TINYINT, rank BIGINT, device BIGINT, stream BIGINT, role VARCHAR
);

CREATE OR REPLACE TABLE store.task_group (group_id BIGINT, name VARCHAR, size BIGINT);

CREATE OR REPLACE TABLE store.task (
    task_id BIGINT, kind TINYINT, rank BIGINT, lane_id BIGINT, step BIGINT, name_id BIGINT,
    op_name_id BIGINT, module_name_id BIGINT, phase TINYINT, class TINYINT, ts BIGINT, dur BIGINT,
    residual_ns BIGINT, slice_id BIGINT, collective_kind TINYINT, group_id BIGINT, coll_id BIGINT
);

CREATE OR REPLACE TABLE store.edge (
    src_id BIGINT, dst_id BIGINT, kind TINYINT, lag_ns BIGINT, from_start BOOLEAN,
    evidence TINYINT, binding BOOLEAN
);

CREATE OR REPLACE TABLE store.replay_slice (
    scenario_id BIGINT, task_id BIGINT, ts BIGINT, dur BIGINT, slack BIGINT, step_slack BIGINT,
    critical BOOLEAN
);

CREATE OR REPLACE TABLE store.critical_path (
    scenario_id BIGINT, position BIGINT, step BIGINT, task_id BIGINT, from_task_id BIGINT,
    edge_kind TINYINT, ts BIGINT, dur BIGINT, lag_dur BIGINT, residual_dur BIGINT
);

CREATE OR REPLACE TABLE store.idle (
    rank BIGINT, device BIGINT, stream BIGINT, whole_device BOOLEAN, step BIGINT, ts BIGINT,
    dur BIGINT, gaps BIGINT, cause TINYINT, host_dur BIGINT, sync_dur BIGINT, event_dur BIGINT,
    comm_dur BIGINT, launch_dur BIGINT, unknown_dur BIGINT, next_task_id BIGINT,
    culprit_task_id BIGINT
);

CREATE OR REPLACE VIEW task AS
SELECT
    t.task_id,
    CASE t.kind
        WHEN 0 THEN 'host_work' WHEN 1 THEN 'host_call' WHEN 2 THEN 'host_wait'
        WHEN 3 THEN 'kernel' WHEN 4 THEN 'memcpy' WHEN 5 THEN 'memset' WHEN 6 THEN 'arrive'
        WHEN 7 THEN 'transfer' WHEN 8 THEN 'meet'
    END AS kind,
    t.rank,
    l.role AS lane,
    l.device,
    l.stream,
    t.step,
    n.name,
    CASE
        WHEN t.kind < 3 THEN 'host'
        ELSE CASE t.class
            WHEN 0 THEN 'other' WHEN 1 THEN 'gemm' WHEN 2 THEN 'attention'
            WHEN 3 THEN 'convolution' WHEN 4 THEN 'normalisation' WHEN 5 THEN 'elementwise'
            WHEN 6 THEN 'reduction' WHEN 7 THEN 'embedding' WHEN 8 THEN 'optimizer'
            WHEN 9 THEN 'collective' WHEN 10 THEN 'memcpy' WHEN 11 THEN 'memset'
        END
    END AS class,
    o.name AS op,
    m.name AS module,
    CASE t.phase WHEN 1 THEN 'forward' WHEN 2 THEN 'backward' WHEN 3 THEN 'optimizer' END AS phase,
    CASE t.collective_kind
        WHEN 0 THEN 'unknown' WHEN 1 THEN 'all_reduce' WHEN 2 THEN 'reduce_scatter'
        WHEN 3 THEN 'all_gather' WHEN 4 THEN 'broadcast' WHEN 5 THEN 'reduce'
        WHEN 6 THEN 'all_to_all' WHEN 7 THEN 'send_recv' WHEN 8 THEN 'send' WHEN 9 THEN 'recv'
        WHEN 10 THEN 'gather' WHEN 11 THEN 'scatter' WHEN 12 THEN 'barrier'
    END || ' of ' || g.size || COALESCE(' in ' || NULLIF(g.name, ''), '') AS collective,
    t.coll_id,
    t.ts,
    t.dur,
    t.residual_ns,
    t.slice_id
FROM store.task AS t
LEFT JOIN store.lane AS l ON l.lane_id = t.lane_id
LEFT JOIN store.name AS n ON n.name_id = t.name_id
LEFT JOIN store.name AS o ON o.name_id = t.op_name_id
LEFT JOIN store.name AS m ON m.name_id = t.module_name_id
LEFT JOIN store.task_group AS g ON g.group_id = t.group_id;
COMMENT ON VIEW task IS
    'Nodes of the dependency graph of the whole run: what a replay moves. Built when first asked for.';
COMMENT ON COLUMN task.task_id IS 'Number of the task.';
COMMENT ON COLUMN task.kind IS
    'host_work, host_call, host_wait (no length: a thread goes on), kernel, memcpy, memset, arrive and transfer (two halves of a collective''s kernel), meet (no length: all members are there).';
COMMENT ON COLUMN task.rank IS 'Rank; NULL of a meet, which belongs to all members.';
COMMENT ON COLUMN task.lane IS
    'Thread, stream or link on which tasks follow one another, by the same word on every rank.';
COMMENT ON COLUMN task.device IS 'Device number; NULL on the host.';
COMMENT ON COLUMN task.stream IS 'Stream; NULL on the host.';
COMMENT ON COLUMN task.step IS 'Recorded step in which the task was issued; NULL outside of them.';
COMMENT ON COLUMN task.name IS 'Kernel, call, or innermost operator of host work; NULL for none.';
COMMENT ON COLUMN task.class IS 'host, or the class of the device work as in kernel.';
COMMENT ON COLUMN task.op IS 'Innermost operator around it; NULL for none.';
COMMENT ON COLUMN task.module IS 'nn.Module or annotation around it (ProfilerStep is none); NULL for none.';
COMMENT ON COLUMN task.phase IS 'forward, backward or optimizer; NULL where it is not known.';
COMMENT ON COLUMN task.collective IS
    'Kind, members and name of the communicator; NULL where it is no collective.';
COMMENT ON COLUMN task.coll_id IS 'Operation, as in collective; NULL for none.';
COMMENT ON COLUMN task.ts IS 'Recorded start, ns after the run''s origin, on the common clock.';
COMMENT ON COLUMN task.dur IS 'Duration without waiting, ns.';
COMMENT ON COLUMN task.residual_ns IS
    'Recorded start minus what its edges explain, ns, signed: no cause is known for it.';
COMMENT ON COLUMN task.slice_id IS 'Slice that it stands for; NULL for none.';

CREATE OR REPLACE VIEW edge AS
SELECT
    e.src_id,
    e.dst_id,
    s.slice_id AS src_slice_id,
    d.slice_id AS dst_slice_id,
    CASE e.kind
        WHEN 0 THEN 'program_order' WHEN 1 THEN 'hand_over' WHEN 2 THEN 'launch'
        WHEN 3 THEN 'graph_launch' WHEN 4 THEN 'stream_order' WHEN 5 THEN 'event_wait'
        WHEN 6 THEN 'host_sync' WHEN 7 THEN 'queue_full' WHEN 8 THEN 'sm_full'
        WHEN 9 THEN 'collective' WHEN 10 THEN 'p2p'
    END AS kind,
    e.lag_ns,
    e.from_start,
    CASE e.evidence WHEN 0 THEN 'recorded' WHEN 1 THEN 'ordered' WHEN 2 THEN 'inferred' END
        AS evidence,
    e.binding
FROM store.edge AS e
JOIN store.task AS s ON s.task_id = e.src_id
JOIN store.task AS d ON d.task_id = e.dst_id;
COMMENT ON VIEW edge IS 'Dependencies between tasks: the second does not start before the first.';
COMMENT ON COLUMN edge.src_id IS 'Task that comes first.';
COMMENT ON COLUMN edge.dst_id IS 'Task that waits for it.';
COMMENT ON COLUMN edge.src_slice_id IS 'Slice of the first; NULL for none.';
COMMENT ON COLUMN edge.dst_slice_id IS 'Slice of the second; NULL for none.';
COMMENT ON COLUMN edge.kind IS
    'program_order, hand_over, launch, graph_launch, stream_order, event_wait, host_sync, queue_full, sm_full, collective or p2p.';
COMMENT ON COLUMN edge.lag_ns IS 'Time from the end of the first to the start of the second, ns, signed.';
COMMENT ON COLUMN edge.from_start IS 'The lag counts from the start of the first.';
COMMENT ON COLUMN edge.evidence IS
    'recorded, ordered (from the order of calls) or inferred (from time).';
COMMENT ON COLUMN edge.binding IS 'In the replay this edge decides when the second starts.';

CREATE OR REPLACE VIEW replay_slice AS
SELECT
    r.scenario_id,
    r.task_id,
    t.slice_id,
    r.ts,
    r.dur,
    r.slack,
    r.step_slack,
    r.critical
FROM store.replay_slice AS r
JOIN store.task AS t ON t.task_id = r.task_id;
COMMENT ON VIEW replay_slice IS 'When each task ran in the replay, and how much later it could.';
COMMENT ON COLUMN replay_slice.scenario_id IS '0 is the run as it was recorded.';
COMMENT ON COLUMN replay_slice.task_id IS 'Task.';
COMMENT ON COLUMN replay_slice.slice_id IS 'Slice that it stands for; NULL for none.';
COMMENT ON COLUMN replay_slice.ts IS 'Start, ns after the run''s origin.';
COMMENT ON COLUMN replay_slice.dur IS 'Duration, ns.';
COMMENT ON COLUMN replay_slice.slack IS
    'How much later it could start and end without the end of the last step moving, ns; NULL where nothing waits for it.';
COMMENT ON COLUMN replay_slice.step_slack IS
    'The same without the end of any step moving, ns.';
COMMENT ON COLUMN replay_slice.critical IS 'It is on the critical path.';

CREATE OR REPLACE VIEW critical_path AS
SELECT
    p.scenario_id,
    p.position,
    p.step,
    p.task_id,
    t.rank,
    t.lane,
    t.kind,
    t.class,
    t.name,
    t.op,
    t.module,
    t.phase,
    t.collective,
    t.coll_id,
    CASE p.edge_kind
        WHEN 0 THEN 'program_order' WHEN 1 THEN 'hand_over' WHEN 2 THEN 'launch'
        WHEN 3 THEN 'graph_launch' WHEN 4 THEN 'stream_order' WHEN 5 THEN 'event_wait'
        WHEN 6 THEN 'host_sync' WHEN 7 THEN 'queue_full' WHEN 8 THEN 'sm_full'
        WHEN 9 THEN 'collective' WHEN 10 THEN 'p2p'
    END AS edge_kind,
    p.from_task_id,
    p.ts,
    p.dur,
    p.lag_dur,
    p.residual_dur,
    p.dur + p.lag_dur + p.residual_dur AS total_dur,
    t.slice_id
FROM store.critical_path AS p
JOIN task AS t ON t.task_id = p.task_id
ORDER BY p.scenario_id, p.position;
COMMENT ON VIEW critical_path IS
    'The chain that the end of the last step hangs on, over all ranks, cut at the steps; total_dur of a step adds up to the step.';
COMMENT ON COLUMN critical_path.scenario_id IS '0 is the run as it was recorded.';
COMMENT ON COLUMN critical_path.position IS 'Place on the path, from 0.';
COMMENT ON COLUMN critical_path.step IS 'Step in which this piece lies; 0 where none is recorded.';
COMMENT ON COLUMN critical_path.task_id IS 'Task.';
COMMENT ON COLUMN critical_path.rank IS 'Rank.';
COMMENT ON COLUMN critical_path.lane IS 'Thread, stream or link.';
COMMENT ON COLUMN critical_path.kind IS 'Kind of task, as in task.';
COMMENT ON COLUMN critical_path.class IS 'host, or the class of the device work.';
COMMENT ON COLUMN critical_path.name IS 'Kernel, call, or innermost operator of host work.';
COMMENT ON COLUMN critical_path.op IS 'Innermost operator around it.';
COMMENT ON COLUMN critical_path.module IS 'nn.Module or annotation around it.';
COMMENT ON COLUMN critical_path.phase IS 'forward, backward or optimizer.';
COMMENT ON COLUMN critical_path.collective IS
    'Kind, members and name of the communicator; NULL where it is no collective.';
COMMENT ON COLUMN critical_path.coll_id IS 'Operation, as in collective.';
COMMENT ON COLUMN critical_path.edge_kind IS
    'Kind of the edge that decided its start; NULL where only its recorded start did.';
COMMENT ON COLUMN critical_path.from_task_id IS 'Task from which that edge comes.';
COMMENT ON COLUMN critical_path.ts IS
    'Start of the piece, ns after the run''s origin: its lag, then its residual, then the task.';
COMMENT ON COLUMN critical_path.dur IS 'Time of the task on the path, ns.';
COMMENT ON COLUMN critical_path.lag_dur IS 'Lag of the edge before it, ns.';
COMMENT ON COLUMN critical_path.residual_dur IS 'Time before it without a known cause, ns.';
COMMENT ON COLUMN critical_path.total_dur IS 'The three together, ns.';
COMMENT ON COLUMN critical_path.slice_id IS 'Slice of the task; NULL for none.';

CREATE OR REPLACE VIEW critical_summary AS
WITH
part AS (
    SELECT
        p.step,
        UNNEST([
            {'dimension': 'class', 'part': p.class, 'dur': p.dur},
            {'dimension': 'class', 'part': 'lag', 'dur': p.lag_dur},
            {'dimension': 'class', 'part': 'residual', 'dur': p.residual_dur},
            {'dimension': 'rank', 'part': p.rank::VARCHAR, 'dur': p.total_dur},
            {'dimension': 'collective', 'part': p.collective, 'dur': p.dur},
            {'dimension': 'module', 'part': p.module, 'dur': p.total_dur},
            {'dimension': 'phase', 'part': p.phase, 'dur': p.total_dur}
        ], recursive := TRUE)
    FROM critical_path AS p
    WHERE p.scenario_id = 0
),
whole AS (
    SELECT
        p.step,
        SUM(p.total_dur) AS dur
    FROM critical_path AS p
    WHERE p.scenario_id = 0
    GROUP BY p.step
)
SELECT
    s.step,
    s.dimension,
    s.part,
    SUM(s.dur)::BIGINT AS dur,
    SUM(s.dur) / ANY_VALUE(w.dur) AS share_frac
FROM part AS s
JOIN whole AS w ON w.step = s.step
WHERE s.dur > 0
GROUP BY s.step, s.dimension, s.part
ORDER BY s.step, s.dimension, dur DESC, s.part;
COMMENT ON VIEW critical_summary IS
    'What the critical path of each step is made of: by class, rank, collective, module and phase.';
COMMENT ON COLUMN critical_summary.step IS 'Step; 0 where none is recorded.';
COMMENT ON COLUMN critical_summary.dimension IS
    'class, rank, collective, module or phase. Lags and residuals are classes of their own; rank, module and phase have them with the task that they come before, collective leaves them out.';
COMMENT ON COLUMN critical_summary.part IS
    'Which class, rank, collective, module or phase; NULL is all that has none.';
COMMENT ON COLUMN critical_summary.dur IS 'Time on the path, ns.';
COMMENT ON COLUMN critical_summary.share_frac IS 'Share of the step, 0 to 1.';

CREATE OR REPLACE VIEW store.idle_gap AS
SELECT
    i.rank,
    i.device,
    i.stream,
    i.whole_device,
    i.step,
    i.ts,
    i.dur,
    i.gaps,
    CASE i.cause
        WHEN 0 THEN 'unknown' WHEN 1 THEN 'launch_overhead' WHEN 2 THEN 'host_late'
        WHEN 3 THEN 'sync_drain' WHEN 4 THEN 'event_wait' WHEN 5 THEN 'comm_wait'
        WHEN 6 THEN 'no_more_work' WHEN 7 THEN 'short'
    END AS cause,
    i.host_dur,
    i.sync_dur,
    i.event_dur,
    i.comm_dur,
    i.launch_dur,
    i.unknown_dur,
    i.next_task_id,
    n.slice_id AS next_slice_id,
    i.culprit_task_id,
    c.slice_id AS culprit_slice_id
FROM store.idle AS i
LEFT JOIN store.task AS n ON n.task_id = i.next_task_id
LEFT JOIN store.task AS c ON c.task_id = i.culprit_task_id;
COMMENT ON VIEW store.idle_gap IS 'Gaps of streams and of whole devices.';

CREATE OR REPLACE VIEW stream_idle AS
SELECT g.* EXCLUDE (whole_device)
FROM store.idle_gap AS g
WHERE NOT g.whole_device
ORDER BY g.rank, g.device, g.stream, g.ts;
COMMENT ON VIEW stream_idle IS
    'Each gap of a stream inside the steps and what the next task waited for, by the edges of the graph; with the time in which the stream is busy the gaps of a step add up to the step.';
COMMENT ON COLUMN stream_idle.rank IS 'Rank.';
COMMENT ON COLUMN stream_idle.device IS 'Device number.';
COMMENT ON COLUMN stream_idle.stream IS 'Stream.';
COMMENT ON COLUMN stream_idle.step IS
    'Step in which the gap lies; a gap over a boundary is cut. 0 where none is recorded.';
COMMENT ON COLUMN stream_idle.ts IS 'Start, ns after the run''s origin.';
COMMENT ON COLUMN stream_idle.dur IS 'Duration, ns.';
COMMENT ON COLUMN stream_idle.gaps IS
    '1; in the row of short gaps of a step, which are summed, their number.';
COMMENT ON COLUMN stream_idle.cause IS
    'What took the most of it: host_late, sync_drain (also host work after a wait for the device), event_wait, comm_wait, launch_overhead, unknown, no_more_work or short.';
COMMENT ON COLUMN stream_idle.host_dur IS 'The host was working up to the launch, ns.';
COMMENT ON COLUMN stream_idle.sync_dur IS
    'The host waited for other device work before it launched, ns.';
COMMENT ON COLUMN stream_idle.event_dur IS
    'Work of another stream of the rank, waited for on the device, ns.';
COMMENT ON COLUMN stream_idle.comm_dur IS
    'A collective moved data, or waited for another rank, ns.';
COMMENT ON COLUMN stream_idle.launch_dur IS 'Lags of launches, streams and events, ns.';
COMMENT ON COLUMN stream_idle.unknown_dur IS
    'No edge explains it, ns. These six add up to dur, unless the cause is no_more_work or short.';
COMMENT ON COLUMN stream_idle.next_task_id IS 'Task that ended the gap; NULL for none.';
COMMENT ON COLUMN stream_idle.next_slice_id IS 'Its slice.';
COMMENT ON COLUMN stream_idle.culprit_task_id IS
    'Task that took the longest part of the gap, on whatever rank; NULL for none.';
COMMENT ON COLUMN stream_idle.culprit_slice_id IS 'Its slice.';

CREATE OR REPLACE VIEW device_idle AS
SELECT g.* EXCLUDE (stream, whole_device)
FROM store.idle_gap AS g
WHERE g.whole_device
ORDER BY g.rank, g.device, g.ts;
COMMENT ON VIEW device_idle IS
    'The same of whole devices: nothing runs on any stream. gpu_idle looks at calls only and needs no graph; this one follows the edges.';
COMMENT ON COLUMN device_idle.rank IS 'Rank.';
COMMENT ON COLUMN device_idle.device IS 'Device number.';
COMMENT ON COLUMN device_idle.step IS
    'Step in which the gap lies; a gap over a boundary is cut. 0 where none is recorded.';
COMMENT ON COLUMN device_idle.ts IS 'Start, ns after the run''s origin.';
COMMENT ON COLUMN device_idle.dur IS 'Duration, ns.';
COMMENT ON COLUMN device_idle.gaps IS
    '1; in the row of short gaps of a step, which are summed, their number.';
COMMENT ON COLUMN device_idle.cause IS
    'What took the most of it: host_late, sync_drain (also host work after a wait for the device), event_wait, comm_wait, launch_overhead, unknown, no_more_work or short.';
COMMENT ON COLUMN device_idle.host_dur IS 'The host was working up to the launch, ns.';
COMMENT ON COLUMN device_idle.sync_dur IS
    'The host waited for other device work before it launched, ns.';
COMMENT ON COLUMN device_idle.event_dur IS
    'Work of another stream of the rank, waited for on the device, ns.';
COMMENT ON COLUMN device_idle.comm_dur IS
    'A collective moved data, or waited for another rank, ns.';
COMMENT ON COLUMN device_idle.launch_dur IS 'Lags of launches, streams and events, ns.';
COMMENT ON COLUMN device_idle.unknown_dur IS
    'No edge explains it, ns. These six add up to dur, unless the cause is no_more_work or short.';
COMMENT ON COLUMN device_idle.next_task_id IS 'Task that ended the gap; NULL for none.';
COMMENT ON COLUMN device_idle.next_slice_id IS 'Its slice.';
COMMENT ON COLUMN device_idle.culprit_task_id IS
    'Task that took the longest part of the gap, on whatever rank; NULL for none.';
COMMENT ON COLUMN device_idle.culprit_slice_id IS 'Its slice.';

CREATE OR REPLACE VIEW store.told_idle AS
SELECT i.* REPLACE (
    CASE
        WHEN i.cause <> 'unknown' THEN i.cause
        WHEN r.kind = 'graph_launch' OR r.n_gpu_events > 2 THEN 'in_graph'
        WHEN r.ts + r.dur <= i.ts + i.dur / 10 THEN 'queued'
        ELSE 'unknown'
    END AS cause
)
FROM main.device_idle AS i
LEFT JOIN main.kernel AS k ON k.id = i.next_slice_id
LEFT JOIN main.runtime AS r ON r.id = k.runtime_id;
COMMENT ON VIEW store.told_idle IS
    'device_idle, of whose unknown gaps two kinds are told: before a kernel of a graph (in_graph), and with the next work in the queue (queued); something probably ran there without a row.';

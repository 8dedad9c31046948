-- Public views: what `replay schema` shows. Every view and column carries a comment; codes of the
-- base tables become the lower-case words of `ingest.vocab`.

CREATE VIEW meta AS
SELECT
    m.key,
    m.value
FROM store.meta AS m;
COMMENT ON VIEW meta IS 'What the store says of itself.';
COMMENT ON COLUMN meta.key IS 'Name of the entry.';
COMMENT ON COLUMN meta.value IS 'Its value as text.';

CREATE VIEW trace AS
SELECT
    t.trace_id,
    t.path,
    t.sha256,
    t.format,
    t.rank,
    t.world_size,
    t.rank_source,
    t.backend,
    t.host,
    t.pid,
    t.trace_name,
    t.schema_version,
    t.display_time_unit,
    t.base_time_ns,
    t.ts_origin_ns,
    t.clock_offset_ns,
    t.clock_uncertainty_ns,
    t.clock_drift_ppm,
    t.clock_base_rank,
    t.clock_samples,
    t.clock_method,
    t.device_clock_offset_ns,
    t.launch_skew_ns,
    t.first_ts,
    t.last_ts,
    t.n_events,
    t.complete,
    t.has_shapes,
    t.has_stacks,
    t.has_sync_events,
    t.metadata
FROM store.trace AS t;
COMMENT ON VIEW trace IS 'One row per file, which is one rank.';
COMMENT ON COLUMN trace.trace_id IS 'Number of the file.';
COMMENT ON COLUMN trace.path IS 'Where the file was.';
COMMENT ON COLUMN trace.sha256 IS 'Hash of the stored bytes (128 bits of BLAKE2b).';
COMMENT ON COLUMN trace.format IS 'Format of the file: kineto.';
COMMENT ON COLUMN trace.rank IS 'Rank of the file.';
COMMENT ON COLUMN trace.world_size IS 'Number of ranks of the job, as recorded.';
COMMENT ON COLUMN trace.rank_source IS
    'Where the rank comes from: distributedInfo, file name or order.';
COMMENT ON COLUMN trace.backend IS 'Communication backend, as recorded.';
COMMENT ON COLUMN trace.host IS 'Host name, as recorded.';
COMMENT ON COLUMN trace.pid IS 'Process id, as recorded.';
COMMENT ON COLUMN trace.trace_name IS 'traceName, as recorded.';
COMMENT ON COLUMN trace.schema_version IS 'schemaVersion of the file.';
COMMENT ON COLUMN trace.display_time_unit IS 'displayTimeUnit; it never scales.';
COMMENT ON COLUMN trace.base_time_ns IS 'baseTimeNanoseconds, added to all times of the file, ns.';
COMMENT ON COLUMN trace.ts_origin_ns IS
    'Origin of ts, the same for all files: Unix ns where known, else ns as recorded.';
COMMENT ON COLUMN trace.clock_offset_ns IS
    'Taken off all times of the file to bring them to the clock of clock_base_rank, ns.';
COMMENT ON COLUMN trace.clock_uncertainty_ns IS 'Uncertainty of that offset, ns.';
COMMENT ON COLUMN trace.clock_drift_ppm IS
    'Further microseconds taken off per second since the first common end; 0 where none is clear.';
COMMENT ON COLUMN trace.clock_base_rank IS
    'Rank to whose clock the file was brought; its own where no collective ties it to another.';
COMMENT ON COLUMN trace.clock_samples IS 'Collectives that the offset rests on.';
COMMENT ON COLUMN trace.clock_method IS
    'How the offset was found: reference, ends, order_of_events, host or alone.';
COMMENT ON COLUMN trace.device_clock_offset_ns IS
    'Added to device times of the file to bring them to its host clock, ns.';
COMMENT ON COLUMN trace.launch_skew_ns IS
    'How much before its call the earliest device row began after that (moved to the call), ns.';
COMMENT ON COLUMN trace.first_ts IS 'Start of the first slice, ns.';
COMMENT ON COLUMN trace.last_ts IS 'End of the last slice, ns.';
COMMENT ON COLUMN trace.n_events IS 'Events in the file, of all phases.';
COMMENT ON COLUMN trace.complete IS 'False when the file ends before its events do.';
COMMENT ON COLUMN trace.has_shapes IS 'Input shapes were recorded (record_shapes).';
COMMENT ON COLUMN trace.has_stacks IS 'Python frames were recorded (with_stack).';
COMMENT ON COLUMN trace.has_sync_events IS
    'cuda_sync rows were recorded (enable_cuda_sync_events).';
COMMENT ON COLUMN trace.metadata IS 'All other top-level keys of the file, JSON.';

CREATE VIEW device AS
SELECT
    d.trace_id,
    d.device,
    d.name,
    d.vendor,
    d.total_mem_bytes,
    d.num_sms,
    d.compute_major,
    d.compute_minor,
    d.max_threads_per_sm,
    d.props
FROM store.device AS d;
COMMENT ON VIEW device IS 'Devices that a file lists (deviceProperties).';
COMMENT ON COLUMN device.trace_id IS 'File.';
COMMENT ON COLUMN device.device IS 'Device number.';
COMMENT ON COLUMN device.name IS 'Name as the profiler writes it.';
COMMENT ON COLUMN device.vendor IS 'NVIDIA or AMD, from the name.';
COMMENT ON COLUMN device.total_mem_bytes IS 'Memory, bytes.';
COMMENT ON COLUMN device.num_sms IS 'Number of multiprocessors.';
COMMENT ON COLUMN device.compute_major IS 'Compute capability, major.';
COMMENT ON COLUMN device.compute_minor IS 'Compute capability, minor.';
COMMENT ON COLUMN device.max_threads_per_sm IS 'Threads that a multiprocessor holds.';
COMMENT ON COLUMN device.props IS 'All properties, JSON.';

CREATE VIEW process AS
SELECT
    p.upid,
    p.trace_id,
    p.pid,
    p.name,
    p.labels,
    p.sort_index
FROM store.process AS p;
COMMENT ON VIEW process IS 'Processes of a file; devices appear as processes too.';
COMMENT ON COLUMN process.upid IS 'Unique number over all files.';
COMMENT ON COLUMN process.trace_id IS 'File.';
COMMENT ON COLUMN process.pid IS 'pid as written.';
COMMENT ON COLUMN process.name IS 'process_name.';
COMMENT ON COLUMN process.labels IS 'process_labels.';
COMMENT ON COLUMN process.sort_index IS 'process_sort_index.';

CREATE VIEW thread AS
SELECT
    h.utid,
    h.upid,
    h.trace_id,
    h.tid,
    h.name,
    h.sort_index,
    h.role
FROM store.thread AS h;
COMMENT ON VIEW thread IS 'Threads and streams of a file.';
COMMENT ON COLUMN thread.utid IS 'Unique number over all files.';
COMMENT ON COLUMN thread.upid IS 'Its process.';
COMMENT ON COLUMN thread.trace_id IS 'File.';
COMMENT ON COLUMN thread.tid IS 'tid as written.';
COMMENT ON COLUMN thread.name IS 'thread_name.';
COMMENT ON COLUMN thread.sort_index IS 'thread_sort_index.';
COMMENT ON COLUMN thread.role IS 'main, autograd, dataloader, collective, stream or other.';

CREATE VIEW process_group AS
SELECT
    g.pg_key,
    g.pg_name,
    g.pg_desc,
    g.backend_config,
    g.pg_size,
    g.ranks,
    g.ranks_exact,
    g.kind
FROM store.process_group AS g;
COMMENT ON VIEW process_group IS 'Communicators, recorded or found by order.';
COMMENT ON COLUMN process_group.pg_key IS 'Key of the communicator: its member ranks and ordinal.';
COMMENT ON COLUMN process_group.pg_name IS 'Process Group Name.';
COMMENT ON COLUMN process_group.pg_desc IS 'Process Group Description.';
COMMENT ON COLUMN process_group.backend_config IS 'Backend, as recorded.';
COMMENT ON COLUMN process_group.pg_size IS 'Number of members.';
COMMENT ON COLUMN process_group.ranks IS 'Member ranks.';
COMMENT ON COLUMN process_group.ranks_exact IS
    'False where the recorded list was cut and continued by guess.';
COMMENT ON COLUMN process_group.kind IS 'What it is used for (unknown so far).';

CREATE VIEW store.communicator AS
SELECT
    g.pg_key,
    MIN(g.pg_name) AS pg_name,
    MIN(g.pg_desc) AS pg_desc,
    MAX(g.pg_size) AS pg_size,
    ANY_VALUE(ARRAY_TO_STRING(g.ranks, ',')) AS ranks
FROM store.process_group AS g
GROUP BY g.pg_key;
COMMENT ON VIEW store.communicator IS
    'One row per key: a communicator may have a name on one rank and none on another.';

CREATE VIEW slice AS
SELECT
    s.id,
    s.trace_id,
    s.rank,
    s.cat,
    n.name,
    s.ts,
    s.dur,
    s.utid,
    s.depth,
    s.parent_id,
    s.self_dur,
    s.step,
    s.correlation,
    s.external_id,
    s.repair
FROM store.slice AS s
JOIN store.name AS n ON n.name_id = s.name_id;
COMMENT ON VIEW slice IS 'Every complete (X) event.';
COMMENT ON COLUMN slice.id IS 'Number of the slice.';
COMMENT ON COLUMN slice.trace_id IS 'File.';
COMMENT ON COLUMN slice.rank IS 'Rank.';
COMMENT ON COLUMN slice.cat IS
    'Category: cpu_op, cuda_runtime, kernel, gpu_memcpy, user_annotation, ...';
COMMENT ON COLUMN slice.name IS 'Name as written.';
COMMENT ON COLUMN slice.ts IS 'Start, ns after the run''s origin, on the common clock.';
COMMENT ON COLUMN slice.dur IS 'Duration, ns.';
COMMENT ON COLUMN slice.utid IS 'Thread or stream.';
COMMENT ON COLUMN slice.depth IS 'Nesting depth on its thread; 0 at the top.';
COMMENT ON COLUMN slice.parent_id IS 'Slice around it on its thread.';
COMMENT ON COLUMN slice.self_dur IS 'Duration without direct children, ns.';
COMMENT ON COLUMN slice.step IS
    'Recorded step (ProfilerStep) around it, or around the call that launched it.';
COMMENT ON COLUMN slice.correlation IS 'Correlation id, as written.';
COMMENT ON COLUMN slice.external_id IS 'External id, as written.';
COMMENT ON COLUMN slice.repair IS 'clamped, unfinished, moved or clipped where a repair changed its times.';

CREATE VIEW slice_args AS
SELECT
    s.id,
    array_to_string(
        list_transform(
            h.parts, lambda part, place: part || coalesce(a.numbers[place]::VARCHAR, '')
        ),
        ''
    ) AS args
FROM store.slice AS s
JOIN store.args AS a ON a.args_id = s.args_id
JOIN store.shape AS h ON h.shape_id = a.shape_id;
COMMENT ON VIEW slice_args IS 'Arguments of a slice, as written.';
COMMENT ON COLUMN slice_args.id IS 'Slice.';
COMMENT ON COLUMN slice_args.args IS 'Arguments, JSON text.';

CREATE VIEW cpu_op AS
SELECT
    o.id,
    o.sequence_number,
    o.fwd_thread_id,
    o.record_function_id,
    o.ev_idx,
    o.input_dims,
    o.input_type,
    o.input_strides,
    o.concrete_inputs,
    o.kernel_backend,
    o.module_id,
    CASE o.phase WHEN 1 THEN 'forward' WHEN 2 THEN 'backward' WHEN 3 THEN 'optimizer' END AS phase,
    o.flops
FROM store.cpu_op AS o;
COMMENT ON VIEW cpu_op IS 'Operators of the host.';
COMMENT ON COLUMN cpu_op.id IS 'Slice.';
COMMENT ON COLUMN cpu_op.sequence_number IS 'Sequence number: the same on forward and backward.';
COMMENT ON COLUMN cpu_op.fwd_thread_id IS 'Thread of the forward.';
COMMENT ON COLUMN cpu_op.record_function_id IS 'Record function id, as in execution traces.';
COMMENT ON COLUMN cpu_op.ev_idx IS 'Ev Idx.';
COMMENT ON COLUMN cpu_op.input_dims IS 'Input Dims, JSON.';
COMMENT ON COLUMN cpu_op.input_type IS 'Input type, JSON.';
COMMENT ON COLUMN cpu_op.input_strides IS 'Input Strides, JSON.';
COMMENT ON COLUMN cpu_op.concrete_inputs IS 'Concrete Inputs, JSON.';
COMMENT ON COLUMN cpu_op.kernel_backend IS 'kernel_backend.';
COMMENT ON COLUMN cpu_op.module_id IS 'Slice of the nn.Module or annotation around it.';
COMMENT ON COLUMN cpu_op.phase IS 'forward, backward or optimizer; NULL when not told.';
COMMENT ON COLUMN cpu_op.flops IS
    'FLOPs of matrix product, convolution or attention by its shapes, as torch counts them (2 M N K); NULL where not known, and where an operator inside has them.';

CREATE VIEW runtime AS
SELECT
    r.id,
    s.rank,
    n.name AS api,
    CASE r.kind
        WHEN 0 THEN 'other' WHEN 1 THEN 'launch' WHEN 2 THEN 'graph_launch' WHEN 3 THEN 'memcpy'
        WHEN 4 THEN 'memset' WHEN 5 THEN 'device_sync' WHEN 6 THEN 'stream_sync'
        WHEN 7 THEN 'event_sync' WHEN 8 THEN 'event_record' WHEN 9 THEN 'event_wait'
        WHEN 10 THEN 'event_query' WHEN 11 THEN 'malloc' WHEN 12 THEN 'free'
    END AS kind,
    s.ts,
    s.dur,
    s.utid,
    s.correlation,
    r.n_gpu_events
FROM store.runtime AS r
JOIN store.slice AS s ON s.id = r.id
JOIN store.name AS n ON n.name_id = s.name_id;
COMMENT ON VIEW runtime IS 'Calls of the runtime and driver API.';
COMMENT ON COLUMN runtime.id IS 'Slice.';
COMMENT ON COLUMN runtime.rank IS 'Rank.';
COMMENT ON COLUMN runtime.api IS 'Name of the call.';
COMMENT ON COLUMN runtime.kind IS
    'What it does: launch, graph_launch, memcpy, memset, device_sync, stream_sync, event_sync, event_record, event_wait, event_query, malloc, free, other.';
COMMENT ON COLUMN runtime.ts IS 'Start, ns after the run''s origin, on the common clock.';
COMMENT ON COLUMN runtime.dur IS 'Duration, ns.';
COMMENT ON COLUMN runtime.utid IS 'Thread.';
COMMENT ON COLUMN runtime.correlation IS 'Correlation id.';
COMMENT ON COLUMN runtime.n_gpu_events IS 'Device rows that it launched.';

CREATE VIEW kernel AS
SELECT
    k.id,
    k.trace_id,
    k.rank,
    k.device,
    k.stream,
    k.context,
    k.cat,
    n.name,
    REGEXP_EXTRACT(REPLACE(n.name, '(anonymous namespace)::', ''), '^(?:void )?([^(<]*)', 1) AS short_name,
    CASE k.class
        WHEN 0 THEN 'other' WHEN 1 THEN 'gemm' WHEN 2 THEN 'attention' WHEN 3 THEN 'convolution'
        WHEN 4 THEN 'normalisation' WHEN 5 THEN 'elementwise' WHEN 6 THEN 'reduction'
        WHEN 7 THEN 'embedding' WHEN 8 THEN 'optimizer' WHEN 9 THEN 'collective'
        WHEN 10 THEN 'memcpy' WHEN 11 THEN 'memset'
    END AS class,
    k.ts,
    k.dur,
    k.step,
    CASE k.phase WHEN 1 THEN 'forward' WHEN 2 THEN 'backward' WHEN 3 THEN 'optimizer' END AS phase,
    k.runtime_id,
    k.op_id,
    k.annotation_id,
    k.module_id,
    k.linked,
    k.link_method,
    k.queue_dur,
    k.grid,
    k.block,
    k.registers_per_thread,
    k.shared_memory,
    k.blocks_per_sm,
    k.warps_per_sm,
    k.est_occupancy_frac,
    k.priority,
    k.graph_id,
    k.graph_node_id,
    k.bytes,
    k.memory_bw_gbps,
    k.prev_id,
    k.gap_dur
FROM store.kernel AS k
JOIN store.name AS n ON n.name_id = k.name_id;
COMMENT ON VIEW kernel IS 'All device work: kernels, copies and memsets.';
COMMENT ON COLUMN kernel.id IS 'Slice.';
COMMENT ON COLUMN kernel.trace_id IS 'File.';
COMMENT ON COLUMN kernel.rank IS 'Rank.';
COMMENT ON COLUMN kernel.device IS 'Device number.';
COMMENT ON COLUMN kernel.stream IS 'Stream.';
COMMENT ON COLUMN kernel.context IS 'Context.';
COMMENT ON COLUMN kernel.cat IS 'kernel, gpu_memcpy, gpu_memset or mtia_ccp_events.';
COMMENT ON COLUMN kernel.name IS 'Name as written.';
COMMENT ON COLUMN kernel.short_name IS 'Name without return type, template and parameters.';
COMMENT ON COLUMN kernel.class IS
    'Class by name: gemm, attention, convolution, normalisation, elementwise, reduction, embedding, optimizer, collective, memcpy, memset, other.';
COMMENT ON COLUMN kernel.ts IS 'Start, ns after the run''s origin, on the common clock.';
COMMENT ON COLUMN kernel.dur IS 'Duration, ns.';
COMMENT ON COLUMN kernel.step IS 'Recorded step of the launching call.';
COMMENT ON COLUMN kernel.phase IS 'forward, backward or optimizer; NULL when not told.';
COMMENT ON COLUMN kernel.runtime_id IS 'Slice of the launching call.';
COMMENT ON COLUMN kernel.op_id IS 'Slice of the innermost operator around that call.';
COMMENT ON COLUMN kernel.annotation_id IS 'Slice of the innermost annotation around that call.';
COMMENT ON COLUMN kernel.module_id IS 'Slice of the nn.Module or annotation around that call.';
COMMENT ON COLUMN kernel.linked IS 'The launching call is known.';
COMMENT ON COLUMN kernel.link_method IS 'How: correlation or order.';
COMMENT ON COLUMN kernel.queue_dur IS 'Time in the queue as the profiler recorded it, ns.';
COMMENT ON COLUMN kernel.grid IS 'Grid, blocks.';
COMMENT ON COLUMN kernel.block IS 'Block, threads.';
COMMENT ON COLUMN kernel.registers_per_thread IS 'Registers per thread.';
COMMENT ON COLUMN kernel.shared_memory IS 'Shared memory, bytes.';
COMMENT ON COLUMN kernel.blocks_per_sm IS 'Blocks per multiprocessor.';
COMMENT ON COLUMN kernel.warps_per_sm IS 'Warps per multiprocessor.';
COMMENT ON COLUMN kernel.est_occupancy_frac IS 'Estimated achieved occupancy, 0 to 1.';
COMMENT ON COLUMN kernel.priority IS 'Priority of the stream.';
COMMENT ON COLUMN kernel.graph_id IS 'CUDA graph.';
COMMENT ON COLUMN kernel.graph_node_id IS 'Node of the CUDA graph.';
COMMENT ON COLUMN kernel.bytes IS 'Bytes copied or set.';
COMMENT ON COLUMN kernel.memory_bw_gbps IS 'Bandwidth as recorded, GB/s (1e9).';
COMMENT ON COLUMN kernel.prev_id IS 'Previous device row of the stream.';
COMMENT ON COLUMN kernel.gap_dur IS
    'From the end of that row to the start of this one, ns; below zero they overlap.';

CREATE VIEW collective AS
SELECT
    c.coll_id,
    c.pg_key,
    c.seq,
    c.comms_id,
    CASE c.kind
        WHEN 0 THEN 'unknown' WHEN 1 THEN 'all_reduce' WHEN 2 THEN 'reduce_scatter'
        WHEN 3 THEN 'all_gather' WHEN 4 THEN 'broadcast' WHEN 5 THEN 'reduce'
        WHEN 6 THEN 'all_to_all' WHEN 7 THEN 'send_recv' WHEN 8 THEN 'send' WHEN 9 THEN 'recv'
        WHEN 10 THEN 'gather' WHEN 11 THEN 'scatter' WHEN 12 THEN 'barrier'
    END AS kind,
    c.collective,
    c.dtype,
    c.msg_bytes,
    c.group_size,
    c.is_p2p,
    c.on_host,
    c.n_expected,
    c.n_seen,
    c.match_method,
    c.first_arrival,
    c.last_arrival,
    c.last_rank,
    c.end_ts,
    c.transfer_dur,
    c.transfer_low_dur,
    c.transfer_high_dur,
    c.algbw,
    c.busbw
FROM store.collective AS c;
COMMENT ON VIEW collective IS 'One row per collective operation, matched over the ranks.';
COMMENT ON COLUMN collective.coll_id IS 'Number of the operation.';
COMMENT ON COLUMN collective.pg_key IS 'Communicator.';
COMMENT ON COLUMN collective.seq IS 'Seq, as recorded.';
COMMENT ON COLUMN collective.comms_id IS 'Number for its Comms Id; equal numbers are equal ids.';
COMMENT ON COLUMN collective.kind IS 'Kind in the words of NCCL.';
COMMENT ON COLUMN collective.collective IS 'Name as recorded.';
COMMENT ON COLUMN collective.dtype IS 'Element type, as c10 names it.';
COMMENT ON COLUMN collective.msg_bytes IS
    'Size S of nccl-tests: per-rank buffer; all-gather its output, reduce-scatter its input. Bytes.';
COMMENT ON COLUMN collective.group_size IS 'Ranks of the communicator.';
COMMENT ON COLUMN collective.is_p2p IS 'Send and receive.';
COMMENT ON COLUMN collective.on_host IS 'Runs on CPU threads (gloo, MPI).';
COMMENT ON COLUMN collective.n_expected IS 'Members that it has in the job.';
COMMENT ON COLUMN collective.n_seen IS 'Members in these files.';
COMMENT ON COLUMN collective.match_method IS
    'How members were matched: comms_id, seq, order or none.';
COMMENT ON COLUMN collective.first_arrival IS 'Start of its first member, ns.';
COMMENT ON COLUMN collective.last_arrival IS 'Start of its last member, ns.';
COMMENT ON COLUMN collective.last_rank IS 'Rank of its last member.';
COMMENT ON COLUMN collective.end_ts IS 'End of its last member, ns.';
COMMENT ON COLUMN collective.transfer_dur IS 'Transfer without waiting, median over members, ns.';
COMMENT ON COLUMN collective.transfer_low_dur IS 'Lower bound of the transfer, ns.';
COMMENT ON COLUMN collective.transfer_high_dur IS 'Upper bound of the transfer, ns.';
COMMENT ON COLUMN collective.algbw IS
    'Algorithm bandwidth as nccl-tests: msg_bytes over transfer, GB/s (1e9).';
COMMENT ON COLUMN collective.busbw IS 'Bus bandwidth as nccl-tests, GB/s (1e9).';

CREATE VIEW collective_rank AS
SELECT
    m.coll_id,
    m.rank,
    m.kernel_id,
    m.op_id,
    m.ts,
    m.dur,
    m.wait_dur,
    m.transfer_dur,
    m.outside_wait_dur,
    m.state,
    m.waits_for
FROM store.collective_rank AS m;
COMMENT ON VIEW collective_rank IS 'Members of collectives.';
COMMENT ON COLUMN collective_rank.coll_id IS 'Operation.';
COMMENT ON COLUMN collective_rank.rank IS 'Rank of the member.';
COMMENT ON COLUMN collective_rank.kernel_id IS
    'Slice of the member: a device row, or a worker-thread row on hosts.';
COMMENT ON COLUMN collective_rank.op_id IS 'Slice of its host record.';
COMMENT ON COLUMN collective_rank.ts IS 'Start, ns after the run''s origin, on the common clock.';
COMMENT ON COLUMN collective_rank.dur IS 'Duration, ns.';
COMMENT ON COLUMN collective_rank.wait_dur IS
    'Waiting for the other members, ns; with transfer_dur it makes dur.';
COMMENT ON COLUMN collective_rank.transfer_dur IS 'Moving data, ns.';
COMMENT ON COLUMN collective_rank.outside_wait_dur IS
    'Part of the wait that is for ranks without a file, ns.';
COMMENT ON COLUMN collective_rank.state IS
    'matched, absent (no file of a partner), uncovered (no counterpart) or desync.';
COMMENT ON COLUMN collective_rank.waits_for IS
    'kernel_id of the members whose arrival it waits for: partners of a send or receive, the root of a broadcast; a NULL among them has no file. Empty: of none; NULL: of all members.';

CREATE VIEW flow AS
SELECT
    f.id,
    f.trace_id,
    f.name,
    f.slice_out,
    f.slice_in
FROM store.flow AS f;
COMMENT ON VIEW flow IS 'Arrows of the trace with both ends.';
COMMENT ON COLUMN flow.id IS 'Id as written.';
COMMENT ON COLUMN flow.trace_id IS 'File.';
COMMENT ON COLUMN flow.name IS 'Category: ac2g, fwdbwd, ...';
COMMENT ON COLUMN flow.slice_out IS 'Slice where it starts.';
COMMENT ON COLUMN flow.slice_in IS 'Slice where it ends.';

CREATE VIEW sync AS
SELECT
    y.id,
    y.kind,
    y.stream,
    y.wait_on_stream,
    y.wait_on_cuda_event_id,
    y.wait_on_cuda_event_record_corr_id,
    y.correlation
FROM store.sync AS y;
COMMENT ON VIEW sync IS 'Synchronisation rows of the profiler (cuda_sync).';
COMMENT ON COLUMN sync.id IS 'Slice.';
COMMENT ON COLUMN sync.kind IS 'cuda_sync_kind.';
COMMENT ON COLUMN sync.stream IS 'Stream that waits.';
COMMENT ON COLUMN sync.wait_on_stream IS 'Stream waited for.';
COMMENT ON COLUMN sync.wait_on_cuda_event_id IS 'Event waited for.';
COMMENT ON COLUMN sync.wait_on_cuda_event_record_corr_id IS
    'Correlation of the call that recorded it.';
COMMENT ON COLUMN sync.correlation IS 'Correlation of the call that waits.';

CREATE VIEW step AS
SELECT
    p.trace_id,
    p.rank,
    p.step,
    p.ts,
    p.dur,
    p.utid,
    p.source,
    p.complete
FROM store.step AS p;
COMMENT ON VIEW step IS 'Steps of the host: recorded (ProfilerStep), else inferred where the period is clear.';
COMMENT ON COLUMN step.trace_id IS 'File.';
COMMENT ON COLUMN step.rank IS 'Rank.';
COMMENT ON COLUMN step.step IS 'Number of the step.';
COMMENT ON COLUMN step.ts IS 'Start, ns after the run''s origin, on the common clock.';
COMMENT ON COLUMN step.dur IS 'Duration, ns.';
COMMENT ON COLUMN step.utid IS 'Thread that carries it.';
COMMENT ON COLUMN step.source IS
    'ProfilerStep, or inferred from annotations, Optimizer.step# or rows that come round in order.';
COMMENT ON COLUMN step.complete IS 'The recording holds the step whole: not cut off, and with work in it.';

CREATE VIEW import_stat AS
SELECT
    i.trace_id,
    i.name,
    i.severity,
    i.value,
    i.description
FROM store.import_stat AS i;
COMMENT ON VIEW import_stat IS 'Oddities of the data, counted.';
COMMENT ON COLUMN import_stat.trace_id IS 'File.';
COMMENT ON COLUMN import_stat.name IS 'Name of the oddity.';
COMMENT ON COLUMN import_stat.severity IS 'info, notice, data_loss or error.';
COMMENT ON COLUMN import_stat.value IS 'How often (or how much, as the description says).';
COMMENT ON COLUMN import_stat.description IS 'What it means.';

CREATE VIEW import_log AS
SELECT
    l.trace_id,
    l.name,
    l.byte_offset,
    l.event_excerpt,
    l.action
FROM store.import_log AS l;
COMMENT ON VIEW import_log IS 'The first occurrences of each oddity, with their place.';
COMMENT ON COLUMN import_log.trace_id IS 'File.';
COMMENT ON COLUMN import_log.name IS 'Name of the oddity.';
COMMENT ON COLUMN import_log.byte_offset IS 'Offset in the decompressed file, bytes.';
COMMENT ON COLUMN import_log.event_excerpt IS 'What stands there.';
COMMENT ON COLUMN import_log.action IS 'What was done.';

CREATE VIEW python_frame AS
SELECT
    s.id,
    a.numbers[h.python_id_at] AS python_id,
    a.numbers[h.python_parent_at] AS python_parent_id,
    a.numbers[h.python_module_at] AS python_module_id,
    starts_with(n.name, 'nn.Module: ') AS is_module
FROM store.slice AS s
JOIN store.args AS a ON a.args_id = s.args_id
JOIN store.shape AS h ON h.shape_id = a.shape_id
JOIN store.name AS n ON n.name_id = s.name_id
WHERE s.cat = 'python_function';
COMMENT ON VIEW python_frame IS 'Python frames (with_stack).';
COMMENT ON COLUMN python_frame.id IS 'Slice.';
COMMENT ON COLUMN python_frame.python_id IS 'Python id, as recorded.';
COMMENT ON COLUMN python_frame.python_parent_id IS 'Python parent id, as recorded.';
COMMENT ON COLUMN python_frame.python_module_id IS 'Python module id, as recorded.';
COMMENT ON COLUMN python_frame.is_module IS 'The call of an nn.Module.';

CREATE VIEW memory_event AS
SELECT
    e.trace_id,
    e.rank,
    e.ts,
    e.utid,
    e.op_id,
    e.device_type,
    e.device,
    e.addr,
    e.bytes,
    e.total_allocated,
    e.total_reserved
FROM store.memory_event AS e;
COMMENT ON VIEW memory_event IS 'Allocations and frees (profile_memory).';
COMMENT ON COLUMN memory_event.trace_id IS 'File.';
COMMENT ON COLUMN memory_event.rank IS 'Rank.';
COMMENT ON COLUMN memory_event.ts IS 'Moment, ns after the run''s origin, on the common clock.';
COMMENT ON COLUMN memory_event.utid IS 'Thread.';
COMMENT ON COLUMN memory_event.op_id IS 'Slice of the innermost operator around it.';
COMMENT ON COLUMN memory_event.device_type IS 'Device Type, as c10 numbers it: 0 CPU, 1 CUDA.';
COMMENT ON COLUMN memory_event.device IS 'Device number.';
COMMENT ON COLUMN memory_event.addr IS 'Address.';
COMMENT ON COLUMN memory_event.bytes IS 'Bytes; below zero they are freed.';
COMMENT ON COLUMN memory_event.total_allocated IS 'Bytes allocated on the device after it.';
COMMENT ON COLUMN memory_event.total_reserved IS 'Bytes that the allocator holds after it.';

CREATE VIEW counter AS
SELECT
    c.trace_id,
    c.rank,
    c.name,
    c.device,
    c.ts,
    c.value
FROM store.counter AS c;
COMMENT ON VIEW counter IS 'Samples of counters (C events).';
COMMENT ON COLUMN counter.trace_id IS 'File.';
COMMENT ON COLUMN counter.rank IS 'Rank.';
COMMENT ON COLUMN counter.name IS 'Name of the counter.';
COMMENT ON COLUMN counter.device IS 'Device number; NULL when not told.';
COMMENT ON COLUMN counter.ts IS 'Moment, ns after the run''s origin, on the common clock.';
COMMENT ON COLUMN counter.value IS 'Value, as recorded.';

-- Base tables, filled once and then read only. Times are integer nanoseconds after the run's
-- origin (`trace.ts_origin_ns`), half-open [ts, ts + dur); NULL means not recorded.
CREATE SCHEMA store;

CREATE TABLE store.meta (key VARCHAR PRIMARY KEY, value VARCHAR);

CREATE TABLE store.trace (
    trace_id BIGINT PRIMARY KEY, path VARCHAR, sha256 VARCHAR, format VARCHAR, rank BIGINT,
    world_size BIGINT, rank_source VARCHAR, backend VARCHAR, host VARCHAR, pid BIGINT,
    trace_name VARCHAR, schema_version BIGINT, display_time_unit VARCHAR, base_time_ns BIGINT,
    ts_origin_ns BIGINT, clock_offset_ns BIGINT, clock_uncertainty_ns BIGINT,
    clock_drift_ppm DOUBLE, clock_base_rank BIGINT, clock_samples BIGINT, clock_method VARCHAR,
    device_clock_offset_ns BIGINT, launch_skew_ns BIGINT, first_ts BIGINT, last_ts BIGINT, n_events BIGINT,
    complete BOOLEAN, has_shapes BOOLEAN, has_stacks BOOLEAN, has_sync_events BOOLEAN,
    metadata VARCHAR
);

CREATE TABLE store.device (
    trace_id BIGINT, device BIGINT, name VARCHAR, vendor VARCHAR, total_mem_bytes BIGINT,
    num_sms BIGINT, compute_major BIGINT, compute_minor BIGINT, max_threads_per_sm BIGINT,
    props VARCHAR
);

CREATE TABLE store.process (
    upid BIGINT PRIMARY KEY, trace_id BIGINT, pid VARCHAR, name VARCHAR, labels VARCHAR,
    sort_index BIGINT
);

CREATE TABLE store.thread (
    utid BIGINT PRIMARY KEY, upid BIGINT, trace_id BIGINT, tid VARCHAR, name VARCHAR,
    sort_index BIGINT, role VARCHAR
);

CREATE TABLE store.process_group (
    pg_key BIGINT, trace_id BIGINT, pg_name VARCHAR, pg_desc VARCHAR, backend_config VARCHAR,
    pg_size BIGINT, ranks BIGINT[], ranks_exact BOOLEAN, kind VARCHAR
);

CREATE TABLE store.name (name_id BIGINT, name VARCHAR);

CREATE TABLE store.slice (
    id BIGINT, trace_id BIGINT, rank BIGINT, cat VARCHAR, name_id BIGINT, ts BIGINT, dur BIGINT,
    utid BIGINT, depth BIGINT, parent_id BIGINT, self_dur BIGINT, step BIGINT,
    correlation UBIGINT, external_id UBIGINT, repair VARCHAR, args_id BIGINT
);

-- Arguments as they are written: the texts of the shape, with a number after each but the last.
CREATE TABLE store.shape (
    shape_id BIGINT, parts VARCHAR[], python_id_at BIGINT, python_parent_at BIGINT,
    python_module_at BIGINT
);

CREATE TABLE store.args (args_id INTEGER, shape_id INTEGER, numbers BIGINT[]);

CREATE TABLE store.cpu_op (
    id BIGINT, sequence_number BIGINT, fwd_thread_id BIGINT, record_function_id BIGINT,
    ev_idx BIGINT, input_dims VARCHAR, input_type VARCHAR, input_strides VARCHAR,
    concrete_inputs VARCHAR, kernel_backend VARCHAR, module_id BIGINT, phase TINYINT,
    flops DOUBLE
);

CREATE TABLE store.runtime (id BIGINT, kind TINYINT, n_gpu_events BIGINT);

CREATE TABLE store.kernel (
    id BIGINT, trace_id BIGINT, rank BIGINT, device BIGINT, stream BIGINT, context BIGINT,
    cat VARCHAR, name_id BIGINT, class TINYINT, ts BIGINT, dur BIGINT, step BIGINT,
    phase TINYINT, runtime_id BIGINT, op_id BIGINT, annotation_id BIGINT, module_id BIGINT,
    linked BOOLEAN, link_method VARCHAR, queue_dur BIGINT, grid BIGINT[], block BIGINT[],
    registers_per_thread BIGINT, shared_memory BIGINT, blocks_per_sm DOUBLE,
    warps_per_sm DOUBLE, est_occupancy_frac DOUBLE, priority BIGINT, graph_id UBIGINT,
    graph_node_id UBIGINT, bytes BIGINT, memory_bw_gbps DOUBLE, prev_id BIGINT, gap_dur BIGINT
);

CREATE TABLE store.collective (
    coll_id BIGINT, pg_key BIGINT, seq BIGINT, comms_id BIGINT, kind TINYINT, collective VARCHAR,
    dtype VARCHAR, msg_bytes BIGINT, group_size BIGINT, is_p2p BOOLEAN, on_host BOOLEAN,
    n_expected BIGINT, n_seen BIGINT, match_method VARCHAR, first_arrival BIGINT,
    last_arrival BIGINT, last_rank BIGINT, end_ts BIGINT, transfer_dur BIGINT,
    transfer_low_dur BIGINT, transfer_high_dur BIGINT, algbw DOUBLE, busbw DOUBLE
);

CREATE TABLE store.collective_rank (
    coll_id BIGINT, rank BIGINT, kernel_id BIGINT, op_id BIGINT, ts BIGINT, dur BIGINT,
    wait_dur BIGINT, transfer_dur BIGINT, outside_wait_dur BIGINT, state VARCHAR,
    waits_for BIGINT[]
);

CREATE TABLE store.flow (
    id VARCHAR, trace_id BIGINT, name VARCHAR, slice_out BIGINT, slice_in BIGINT
);

CREATE TABLE store.sync (
    id BIGINT, kind VARCHAR, stream BIGINT, wait_on_stream BIGINT, wait_on_cuda_event_id UBIGINT,
    wait_on_cuda_event_record_corr_id UBIGINT, correlation UBIGINT
);

CREATE TABLE store.step (
    trace_id BIGINT, rank BIGINT, step BIGINT, ts BIGINT, dur BIGINT, utid BIGINT,
    source VARCHAR, complete BOOLEAN
);

CREATE TABLE store.import_stat (
    trace_id BIGINT, name VARCHAR, severity VARCHAR, value BIGINT, description VARCHAR
);

CREATE TABLE store.import_log (
    trace_id BIGINT, name VARCHAR, byte_offset BIGINT, event_excerpt VARCHAR, action VARCHAR
);

CREATE TABLE store.memory_event (
    trace_id BIGINT, rank BIGINT, ts BIGINT, utid BIGINT, op_id BIGINT, device_type BIGINT,
    device BIGINT, addr UBIGINT, bytes BIGINT, total_allocated UBIGINT, total_reserved UBIGINT
);

CREATE TABLE store.counter (
    trace_id BIGINT, rank BIGINT, name VARCHAR, device BIGINT, ts BIGINT, value DOUBLE
);

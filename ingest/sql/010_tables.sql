-- Base tables, filled once and then read only. Times are integer nanoseconds after the run's
-- origin (`trace.ts_origin_ns`), half-open [ts, ts + dur); NULL means not recorded.
CREATE SCHEMA store;

CREATE TABLE store.meta (key VARCHAR PRIMARY KEY, value VARCHAR);

CREATE TABLE store.trace (
    trace_id INTEGER PRIMARY KEY, path VARCHAR, sha256 VARCHAR, format VARCHAR, rank INTEGER,
    world_size INTEGER, rank_source VARCHAR, backend VARCHAR, host VARCHAR, pid BIGINT,
    trace_name VARCHAR, schema_version INTEGER, display_time_unit VARCHAR, base_time_ns BIGINT,
    ts_origin_ns BIGINT, clock_offset_ns BIGINT, clock_uncertainty_ns BIGINT, clock_method VARCHAR,
    device_clock_offset_ns BIGINT, first_ts BIGINT, last_ts BIGINT, n_events BIGINT,
    complete BOOLEAN, has_shapes BOOLEAN, has_stacks BOOLEAN, has_sync_events BOOLEAN,
    metadata VARCHAR
);

CREATE TABLE store.device (
    trace_id INTEGER, device INTEGER, name VARCHAR, vendor VARCHAR, total_mem_bytes BIGINT,
    num_sms INTEGER, compute_major INTEGER, compute_minor INTEGER, max_threads_per_sm INTEGER,
    props VARCHAR
);

CREATE TABLE store.process (
    upid INTEGER PRIMARY KEY, trace_id INTEGER, pid VARCHAR, name VARCHAR, labels VARCHAR,
    sort_index BIGINT
);

CREATE TABLE store.thread (
    utid INTEGER PRIMARY KEY, upid INTEGER, trace_id INTEGER, tid VARCHAR, name VARCHAR,
    sort_index BIGINT, role VARCHAR
);

CREATE TABLE store.process_group (
    pg_key BIGINT, trace_id INTEGER, pg_name VARCHAR, pg_desc VARCHAR, backend_config VARCHAR,
    pg_size INTEGER, ranks INTEGER[], ranks_exact BOOLEAN, kind VARCHAR
);

CREATE TABLE store.name (name_id INTEGER, name VARCHAR);

CREATE TABLE store.slice (
    id BIGINT, trace_id INTEGER, rank INTEGER, cat VARCHAR, name_id INTEGER, ts BIGINT, dur BIGINT,
    utid INTEGER, depth INTEGER, parent_id BIGINT, self_dur BIGINT, step INTEGER,
    correlation UBIGINT, external_id UBIGINT, repair VARCHAR
);

CREATE TABLE store.slice_args (id BIGINT, args VARCHAR);

CREATE TABLE store.cpu_op (
    id BIGINT, sequence_number BIGINT, fwd_thread_id BIGINT, record_function_id BIGINT,
    ev_idx BIGINT, input_dims VARCHAR, input_type VARCHAR, input_strides VARCHAR,
    concrete_inputs VARCHAR, kernel_backend VARCHAR, module_id BIGINT, phase TINYINT
);

CREATE TABLE store.runtime (id BIGINT, kind TINYINT, n_gpu_events INTEGER);

CREATE TABLE store.kernel (
    id BIGINT, trace_id INTEGER, rank INTEGER, device INTEGER, stream BIGINT, context BIGINT,
    cat VARCHAR, name_id INTEGER, class TINYINT, ts BIGINT, dur BIGINT, step INTEGER,
    phase TINYINT, runtime_id BIGINT, op_id BIGINT, annotation_id BIGINT, module_id BIGINT,
    linked BOOLEAN, link_method VARCHAR, queue_dur BIGINT, grid INTEGER[], block INTEGER[],
    registers_per_thread INTEGER, shared_memory INTEGER, blocks_per_sm DOUBLE,
    warps_per_sm DOUBLE, est_occupancy_frac DOUBLE, priority INTEGER, graph_id UBIGINT,
    graph_node_id UBIGINT, bytes BIGINT, memory_bw_gbps DOUBLE, prev_id BIGINT, gap_dur BIGINT
);

CREATE TABLE store.collective (
    coll_id BIGINT, pg_key BIGINT, seq BIGINT, comms_id BIGINT, kind TINYINT, collective VARCHAR,
    dtype VARCHAR, msg_bytes BIGINT, group_size INTEGER, is_p2p BOOLEAN, on_host BOOLEAN,
    n_expected INTEGER, n_seen INTEGER, match_method VARCHAR, first_arrival BIGINT,
    last_arrival BIGINT, last_rank INTEGER, end_ts BIGINT, transfer_dur BIGINT,
    transfer_low_dur BIGINT, transfer_high_dur BIGINT, algbw DOUBLE, busbw DOUBLE
);

CREATE TABLE store.collective_rank (
    coll_id BIGINT, rank INTEGER, kernel_id BIGINT, op_id BIGINT, ts BIGINT, dur BIGINT,
    wait_dur BIGINT, transfer_dur BIGINT, outside_wait_dur BIGINT, state VARCHAR
);

CREATE TABLE store.flow (
    id VARCHAR, trace_id INTEGER, name VARCHAR, slice_out BIGINT, slice_in BIGINT
);

CREATE TABLE store.sync (
    id BIGINT, kind VARCHAR, stream BIGINT, wait_on_stream BIGINT, wait_on_cuda_event_id UBIGINT,
    wait_on_cuda_event_record_corr_id UBIGINT, correlation UBIGINT
);

CREATE TABLE store.step (
    trace_id INTEGER, rank INTEGER, step INTEGER, ts BIGINT, dur BIGINT, utid INTEGER,
    source VARCHAR, complete BOOLEAN
);

CREATE TABLE store.import_stat (
    trace_id INTEGER, name VARCHAR, severity VARCHAR, value BIGINT, description VARCHAR
);

CREATE TABLE store.import_log (
    trace_id INTEGER, name VARCHAR, byte_offset BIGINT, event_excerpt VARCHAR, action VARCHAR
);

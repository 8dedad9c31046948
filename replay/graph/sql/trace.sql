-- One row per file.
SELECT
    t.trace_id AS trace_id,
    t.rank AS rank,
    COALESCE(t.world_size, -1) AS world_size,
    t.rank_source AS rank_source,
    t.host AS host,
    t.n_events AS n_events,
    COALESCE(t.clock_offset_ns, 0) AS clock_offset_ns,
    COALESCE(t.clock_uncertainty_ns, -1) AS clock_uncertainty_ns,
    COALESCE(t.clock_drift_ppm, 0) AS clock_drift_ppm,
    COALESCE(t.clock_base_rank, t.rank) AS clock_base_rank,
    COALESCE(t.clock_samples, 0) AS clock_samples,
    COALESCE(t.clock_method, 'alone') AS clock_method,
    COALESCE(t.launch_skew_ns, 0) AS launch_skew_ns,
    COALESCE(t.device_clock_offset_ns, 0) AS device_clock_offset_ns,
    t.complete AS complete,
    (
        SELECT COUNT(*) FROM store.step AS p
        WHERE p.trace_id = t.trace_id AND p.source = 'ProfilerStep'
    ) AS steps_recorded,
    t.has_shapes AS has_shapes,
    t.has_stacks AS has_stacks,
    t.has_sync_events AS has_sync_events,
    COALESCE(TRY(JSON_EXTRACT_STRING(t.metadata, '$.synthetic.made_by')), '') AS made_by,
    d.name AS gpu,
    COALESCE(d.n_devices, 0) AS n_devices
FROM store.trace AS t
LEFT JOIN (
    SELECT trace_id, MIN_BY(name, device) AS name, COUNT(*) AS n_devices
    FROM store.device
    GROUP BY trace_id
) AS d ON d.trace_id = t.trace_id
ORDER BY t.rank, t.trace_id;

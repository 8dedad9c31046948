-- Synchronisation rows of the profiler (`enable_cuda_sync_events`).
SELECT
    s.trace_id AS trace_id,
    COALESCE(y.correlation, 0) AS correlation,
    COALESCE(y.stream, -1) AS stream,
    COALESCE(y.wait_on_stream, -1) AS wait_on_stream,
    COALESCE((y.wait_on_cuda_event_id % 9223372036854775807)::BIGINT, -1) AS event,
    COALESCE(y.wait_on_cuda_event_record_corr_id, 0) AS record_correlation
FROM store.sync AS y
JOIN store.slice AS s ON s.id = y.id
WHERE s.trace_id IN (SELECT UNNEST($trace_ids));

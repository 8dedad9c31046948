-- The most that the allocator held on one device, and the memory of one device; -1: not recorded.
SELECT
    COALESCE((
        SELECT MAX(m.total_allocated)::BIGINT
        FROM store.memory_event AS m
        WHERE m.device_type <> 0 AND m.trace_id IN (SELECT UNNEST($trace_ids))
    ), -1) AS peak_bytes,
    COALESCE((
        SELECT MAX(d.total_mem_bytes)
        FROM store.device AS d
        WHERE d.trace_id IN (SELECT UNNEST($trace_ids))
    ), -1) AS memory_bytes;

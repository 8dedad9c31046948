-- Mean step without the profiler as the recording measured it, ns: the median over the ranks that say so.
SELECT
    CAST(
        MEDIAN(
            TRY_CAST(json_extract_string(metadata, '$.trace_replay.unprofiled_step_ns') AS BIGINT)
        ) AS BIGINT
    ) AS step_ns
FROM store.trace
HAVING step_ns > 0;

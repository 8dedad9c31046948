-- Host rows of the chosen files: what nests and what names.
SELECT
    s.id AS slice_id,
    COALESCE(s.parent_id, -1) AS parent_id,
    s.name_id AS name_id,
    s.ts AS ts_ns,
    s.ts + s.dur AS end_ns,
    COALESCE(s.depth, 0) AS depth,
    COALESCE(s.utid, -1) AS utid,
    COALESCE(s.rank, -1) AS rank,
    CASE s.cat
        WHEN 'cpu_op' THEN 0
        WHEN 'user_annotation' THEN 1
        WHEN 'python_function' THEN 2
        ELSE 3
    END AS category
FROM store.slice AS s
WHERE
    s.trace_id IN (SELECT UNNEST($trace_ids))
    AND s.cat NOT IN (
        'kernel', 'gpu_memcpy', 'gpu_memset', 'mtia_ccp_events', 'gpu_user_annotation', 'Trace'
    )
ORDER BY s.id;

-- What each file says of itself, for a file that is written like it.
SELECT
    t.trace_id AS trace_id,
    t.rank AS rank,
    t.ts_origin_ns AS ts_origin_ns,
    COALESCE(t.metadata, '{}') AS metadata
FROM store.trace AS t
WHERE t.trace_id IN (SELECT UNNEST($trace_ids))
ORDER BY t.rank;

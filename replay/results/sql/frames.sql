-- All rows of the threads that hold some rows, by thread and start, what is around another first.
SELECT
    s.id,
    s.utid,
    s.ts AS ts_ns,
    s.ts + s.dur AS end_ns,
    s.cat = 'python_function' AS is_frame,
    COALESCE(s.parent_id, -1) AS parent_id,
    s.name_id
FROM store.slice AS s
WHERE
    s.utid IN (
        SELECT o.utid
        FROM store.slice AS o
        WHERE o.id IN (SELECT UNNEST($slice_ids::BIGINT[]))
    )
ORDER BY s.utid, s.ts, s.depth;

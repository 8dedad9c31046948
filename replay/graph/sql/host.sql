-- Host rows that can hold or shape tasks, by thread and time; Python frames only nest.
SELECT
    s.id AS slice_id,
    s.trace_id AS trace_id,
    s.utid AS utid,
    s.ts AS ts_ns,
    s.ts + s.dur AS end_ns,
    s.name_id AS name_id,
    CASE
        WHEN s.cat = 'cpu_op' THEN 0
        WHEN s.cat = 'user_annotation' THEN 1
        ELSE 2
    END AS category,
    COALESCE(r.kind, 0) AS kind,
    COALESCE(s.correlation, 0) AS correlation,
    COALESCE(o.phase, 0) AS phase
FROM store.slice AS s
LEFT JOIN store.runtime AS r ON r.id = s.id
LEFT JOIN store.cpu_op AS o ON o.id = s.id
WHERE s.trace_id IN (SELECT UNNEST($trace_ids))
    AND (s.cat IN ('cpu_op', 'user_annotation') OR r.id IS NOT NULL)
ORDER BY s.utid, s.ts, s.dur DESC, s.id;

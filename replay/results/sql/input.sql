-- Where a thread fetches its next batch, on the threads that carry steps (on all, where none does).
WITH carrying AS (
    SELECT DISTINCT s.trace_id, s.utid
    FROM store.step AS s
    WHERE s.utid IS NOT NULL
)
SELECT
    s.rank AS rank,
    s.ts AS ts_ns,
    s.ts + s.dur AS end_ns
FROM store.slice AS s
JOIN store.name AS n ON n.name_id = s.name_id
WHERE s.cat IN ('cpu_op', 'user_annotation')
    AND (n.name LIKE 'enumerate(Data%' OR n.name LIKE '%DataLoader%.__next__%')
    AND (
        NOT EXISTS (FROM carrying AS c WHERE c.trace_id = s.trace_id)
        OR EXISTS (FROM carrying AS c WHERE c.trace_id = s.trace_id AND c.utid = s.utid)
    )
ORDER BY s.rank, s.ts;

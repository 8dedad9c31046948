-- Recorded step windows that the recording holds whole.
SELECT p.trace_id AS trace_id, p.step AS step, p.ts AS ts_ns, p.ts + p.dur AS end_ns, p.utid AS utid
FROM store.step AS p
WHERE p.trace_id IN (SELECT UNNEST($trace_ids)) AND p.source = 'ProfilerStep' AND p.complete
ORDER BY p.trace_id, p.ts;

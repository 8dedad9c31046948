-- Time of the device work that was moved to keep it from preceding its call.
SELECT COALESCE(SUM(s.dur), 0)::BIGINT AS moved_ns
FROM store.slice AS s
JOIN store.kernel AS k ON k.id = s.id
WHERE s.repair = 'moved' AND s.trace_id IN (SELECT UNNEST($trace_ids));

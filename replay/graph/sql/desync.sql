-- Members of collectives that contradict another rank, in words.
SELECT l.event_excerpt AS told
FROM store.import_log AS l
WHERE l.name = 'collective_desync'
ORDER BY l.trace_id, l.event_excerpt;

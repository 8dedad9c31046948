-- name import_issues
-- description What was odd in the files, worst first, with the first place of each.
-- param severity VARCHAR NULL Only this: info, notice, data_loss or error.
SELECT
    i.severity,
    i.name,
    SUM(i.value)::BIGINT AS value,
    COUNT(DISTINCT i.trace_id) AS files,
    ANY_VALUE(i.description) AS description,
    MIN(l.byte_offset) AS first_offset,
    ARG_MIN(l.event_excerpt, l.byte_offset) AS excerpt
FROM import_stat AS i
LEFT JOIN (
    SELECT
        trace_id,
        name,
        MIN(byte_offset) AS byte_offset,
        ARG_MIN(event_excerpt, byte_offset) AS event_excerpt
    FROM import_log
    GROUP BY trace_id, name
) AS l ON l.trace_id = i.trace_id AND l.name = i.name
WHERE i.value > 0 AND ($severity IS NULL OR i.severity = $severity)
GROUP BY i.severity, i.name
ORDER BY LIST_POSITION(['error', 'data_loss', 'notice', 'info'], i.severity), value DESC, i.name

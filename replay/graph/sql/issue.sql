-- Oddities of the data, summed over the files.
SELECT i.name AS name, i.severity AS severity, SUM(i.value)::BIGINT AS value
FROM store.import_stat AS i
GROUP BY i.name, i.severity
ORDER BY i.name;

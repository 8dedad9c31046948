-- Rows of devices that are no work: labels, and evidence of waits.
SELECT s.cat AS cat, COUNT(*) AS n
FROM store.slice AS s
WHERE
    s.trace_id IN (SELECT UNNEST($trace_ids))
    AND s.cat IN ('gpu_user_annotation', 'cuda_sync')
GROUP BY s.cat
ORDER BY s.cat;

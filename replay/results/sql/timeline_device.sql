-- What ties device work to the calls that launched it, as recorded.
SELECT
    s.id AS slice_id,
    s.trace_id AS trace_id,
    s.cat AS cat,
    COALESCE(s.correlation, 0)::BIGINT AS correlation,
    COALESCE(s.external_id, 0)::BIGINT AS external_id
FROM store.kernel AS k
JOIN store.slice AS s ON s.id = k.id
WHERE s.trace_id IN (SELECT UNNEST($trace_ids))
ORDER BY s.id;

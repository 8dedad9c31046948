-- Whom members of collectives wait for, one row per pair; members that wait for all have none.
SELECT
    w.slice_id AS slice_id,
    COALESCE(w.other_id, -1) AS other_id
FROM (
    SELECT
        r.kernel_id AS slice_id,
        UNNEST(r.waits_for) AS other_id
    FROM store.collective_rank AS r
    JOIN store.slice AS s ON s.id = r.kernel_id
    WHERE s.trace_id IN (SELECT UNNEST($trace_ids))
) AS w
ORDER BY w.slice_id, w.other_id;

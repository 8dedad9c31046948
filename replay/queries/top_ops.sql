-- name top_ops
-- description Operators of the host by the time that is their own, with the device time they launch.
-- param rank BIGINT NULL Only this rank; all where NULL.
-- param top BIGINT 20 Rows at most.
WITH launched AS (
    SELECT
        k.op_id,
        SUM(k.dur) AS device_dur
    FROM kernel AS k
    WHERE k.op_id IS NOT NULL
    GROUP BY k.op_id
)
SELECT
    s.name AS op,
    COUNT(*) AS calls,
    SUM(s.self_dur) / 1e6 AS self_ms,
    SUM(s.dur) / 1e6 AS total_ms,
    COALESCE(SUM(l.device_dur), 0) / 1e6 AS device_ms
FROM slice AS s
LEFT JOIN launched AS l ON l.op_id = s.id
WHERE s.cat = 'cpu_op' AND ($rank IS NULL OR s.rank = $rank)
GROUP BY s.name
ORDER BY self_ms DESC, op
LIMIT $top

-- FLOPs of operators that began in the chosen steps (in all of the recording, where none is), by the
-- element type of what they multiply: of a bias, or of what is added, the type may be another. An
-- fp32 operator that launched a kernel on matrix units ran as TF32, which only the kernel's name tells.
WITH
counted AS (
    SELECT
        s.id,
        s.trace_id,
        s.utid,
        s.ts,
        s.ts + s.dur AS end_ts,
        o.flops,
        COALESCE(
            NULLIF(REGEXP_EXTRACT(o.input_type, '^\s*\[\s*"[^"]*"\s*,\s*"([^"]+)"', 1), ''),
            'unknown'
        ) AS dtype
    FROM store.cpu_op AS o
    JOIN store.slice AS s ON s.id = o.id
    WHERE o.flops IS NOT NULL AND s.trace_id IN (SELECT UNNEST($trace_ids))
),
fp32 AS (
    SELECT id, utid, ts, end_ts
    FROM counted
    WHERE dtype = 'float'
),
on_matrix_units AS (
    SELECT c.utid, c.ts
    FROM store.kernel AS k
    JOIN store.name AS n ON n.name_id = k.name_id
    JOIN store.slice AS c ON c.id = k.runtime_id
    WHERE k.class IN (1, 2, 3)
        AND k.trace_id IN (SELECT UNNEST($trace_ids))
        AND (CONTAINS(n.name, 'tf32') OR CONTAINS(n.name, '_s1688'))
),
tf32 AS (
    SELECT DISTINCT f.id
    FROM on_matrix_units AS m
    ASOF JOIN fp32 AS f ON f.utid = m.utid AND f.ts <= m.ts
    WHERE m.ts < f.end_ts
)
SELECT
    IF(c.id IN (SELECT id FROM tf32), 'tf32', c.dtype) AS dtype,
    SUM(c.flops) AS flops
FROM counted AS c
WHERE $whole
    OR EXISTS (
        FROM store.step AS p
        WHERE p.trace_id = c.trace_id
            AND p.step IN (SELECT UNNEST($steps))
            AND c.ts >= p.ts
            AND c.ts < p.ts + p.dur
    )
GROUP BY ALL
ORDER BY flops DESC, dtype;

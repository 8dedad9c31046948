-- FLOPs of operators that began in the chosen steps (in all of the recording, where none is), by the
-- element type of what they multiply: of a bias, or of what is added, the type may be another.
SELECT
    COALESCE(NULLIF(REGEXP_EXTRACT(o.input_type, '^\s*\[\s*"[^"]*"\s*,\s*"([^"]+)"', 1), ''), 'unknown') AS dtype,
    SUM(o.flops) AS flops
FROM store.cpu_op AS o
JOIN store.slice AS s ON s.id = o.id
WHERE o.flops IS NOT NULL
    AND s.trace_id IN (SELECT UNNEST($trace_ids))
    AND (
        $whole
        OR EXISTS (
            FROM store.step AS p
            WHERE p.trace_id = s.trace_id
                AND p.step IN (SELECT UNNEST($steps))
                AND s.ts >= p.ts
                AND s.ts < p.ts + p.dur
        )
    )
GROUP BY ALL
ORDER BY flops DESC, dtype;

-- Kernels of the chosen files, with the operator whose inputs tell their work: the one with known
-- FLOPs that was open on the launching thread (such never lie inside one another, so that the last
-- one begun is the only candidate), else the innermost one.
WITH
counted AS (
    SELECT
        o.id,
        o.flops,
        s.utid,
        s.ts,
        s.ts + s.dur AS end_ts
    FROM store.cpu_op AS o
    JOIN store.slice AS s ON s.id = o.id
    WHERE o.flops IS NOT NULL AND s.trace_id IN (SELECT UNNEST($trace_ids))
),
launched AS (
    SELECT
        k.id,
        k.dur,
        k.class,
        k.name_id,
        k.op_id,
        COALESCE(c.utid, -1) AS utid,
        COALESCE(c.ts, k.ts) AS at
    FROM store.kernel AS k
    LEFT JOIN store.slice AS c ON c.id = k.runtime_id
    WHERE k.trace_id IN (SELECT UNNEST($trace_ids)) AND k.cat = 'kernel' AND k.class <> 9
),
joined AS (
    SELECT
        l.*,
        CASE WHEN l.at < c.end_ts THEN c.id END AS counted_id,
        CASE WHEN l.at < c.end_ts THEN c.flops END AS flops
    FROM launched AS l
    ASOF LEFT JOIN counted AS c ON c.utid = l.utid AND c.ts <= l.at
)
SELECT
    j.id AS slice_id,
    j.dur AS dur_ns,
    COALESCE(j.class, 0)::TINYINT AS class,
    j.name_id,
    COALESCE(j.counted_id, j.op_id, -1) AS op_id,
    COALESCE(j.flops, 'nan'::DOUBLE) AS flops,
    COALESCE(
        DENSE_RANK() OVER (ORDER BY s.name_id, o.input_dims, o.input_type) - 1, 0
    ) AS shape
FROM joined AS j
LEFT JOIN store.cpu_op AS o ON o.id = COALESCE(j.counted_id, j.op_id)
LEFT JOIN store.slice AS s ON s.id = o.id
ORDER BY j.id;

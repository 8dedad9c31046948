-- Time of kernels of matrix products, convolution and attention that were launched in the chosen
-- steps (of all, where none is), and what of it an operator launched whose FLOPs are known. Such
-- operators never lie inside one another, so that the last one begun is the only candidate. What
-- runs before a stream's first kernel with a recorded launch was launched before the recording.
WITH
opening AS (
    SELECT k.trace_id, k.device, k.stream, MIN(k.ts) AS ts
    FROM store.kernel AS k
    WHERE k.runtime_id IS NOT NULL
    GROUP BY k.trace_id, k.device, k.stream
),
matrix AS (
    SELECT
        k.dur,
        k.trace_id,
        COALESCE(c.utid, -1) AS utid,
        COALESCE(c.ts, k.ts) AS at
    FROM store.kernel AS k
    LEFT JOIN store.slice AS c ON c.id = k.runtime_id
    LEFT JOIN opening AS o
        ON o.trace_id = k.trace_id AND o.device = k.device AND o.stream = k.stream
    WHERE k.class IN (1, 2, 3)
        AND k.trace_id IN (SELECT UNNEST($trace_ids))
        AND (k.runtime_id IS NOT NULL OR o.ts IS NULL OR k.ts >= o.ts)
),
chosen AS (
    SELECT
        m.dur,
        m.at,
        m.utid
    FROM matrix AS m
    WHERE $whole
        OR EXISTS (
            FROM store.step AS p
            WHERE p.trace_id = m.trace_id
                AND p.step IN (SELECT UNNEST($steps))
                AND m.at >= p.ts
                AND m.at < p.ts + p.dur
        )
),
counted AS (
    SELECT
        s.utid,
        s.ts,
        s.ts + s.dur AS end_ts
    FROM store.cpu_op AS o
    JOIN store.slice AS s ON s.id = o.id
    WHERE o.flops IS NOT NULL AND s.trace_id IN (SELECT UNNEST($trace_ids))
)
SELECT
    COALESCE(SUM(m.dur), 0)::BIGINT AS matrix_ns,
    COALESCE(SUM(m.dur) FILTER (WHERE m.at < c.end_ts), 0)::BIGINT AS counted_ns
FROM chosen AS m
ASOF LEFT JOIN counted AS c ON c.utid = m.utid AND c.ts <= m.at;

-- name host_time
-- description What the thread that carries the step does in a step of the host, by the innermost row
--     at each moment; the parts add up to the step. Where nothing is recorded it is in Python
--     without frames, or it waits.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
hosts AS (
    SELECT h.*
    FROM host_span($ranks, $first_step, $last_step) AS h
),
busiest AS (
    SELECT
        s.rank,
        s.utid,
        COUNT(*) AS n
    FROM slice AS s
    WHERE s.cat IN ('cpu_op', 'cuda_runtime', 'cuda_driver')
    GROUP BY s.rank, s.utid
),
carrier AS (
    SELECT
        h.rank,
        h.ts,
        h.end_ts,
        COALESCE(
            (SELECT MIN(p.utid) FROM step AS p WHERE p.rank = h.rank AND p.source = 'ProfilerStep'),
            (SELECT ARG_MAX(b.utid, (b.n, -b.utid)) FROM busiest AS b WHERE b.rank = h.rank)
        ) AS utid
    FROM hosts AS h
),
change AS (
    SELECT
        c.rank,
        p.ts,
        COALESCE(p.slice_id, -1) AS slice_id,
        0 AS backward,
        0 AS loading
    FROM store.host_point AS p
    JOIN carrier AS c ON c.utid = p.utid
    UNION ALL
    SELECT c.rank, UNNEST([c.ts, c.end_ts]), NULL, 0, 0
    FROM carrier AS c
    UNION ALL
    SELECT s.rank, UNNEST([s.ts, s.ts + s.dur]), NULL, UNNEST([1, -1]), 0
    FROM slice AS s
    JOIN thread AS d ON d.utid = s.utid
    JOIN carrier AS c ON c.rank = s.rank
    WHERE d.role = 'autograd' AND s.depth = 0 AND s.utid <> c.utid
    UNION ALL
    SELECT s.rank, UNNEST([s.ts, s.ts + s.dur]), NULL, 0, UNNEST([1, -1])
    FROM slice AS s
    JOIN carrier AS c ON c.utid = s.utid
    WHERE s.name LIKE '%DataLoader%' AND s.cat IN ('user_annotation', 'cpu_op')
),
moment AS (
    SELECT
        c.rank,
        c.ts,
        MAX(c.slice_id) AS slice_id,
        SUM(c.backward) AS backward,
        SUM(c.loading) AS loading
    FROM change AS c
    GROUP BY c.rank, c.ts
),
piece AS (
    SELECT
        m.rank,
        m.ts,
        LEAD(m.ts) OVER swept - m.ts AS dur,
        LAST_VALUE(m.slice_id IGNORE NULLS) OVER swept AS slice_id,
        SUM(m.backward) OVER swept > 0 AS is_backward,
        SUM(m.loading) OVER swept > 0 AS is_loading
    FROM moment AS m
    WINDOW swept AS (PARTITION BY m.rank ORDER BY m.ts ROWS UNBOUNDED PRECEDING)
),
told AS (
    SELECT
        p.rank,
        p.dur,
        CASE
            WHEN p.is_loading THEN 'data loader'
            WHEN p.is_backward
                AND (s.id IS NULL OR s.cat = 'user_annotation' OR s.name LIKE '%run_backward of%')
                THEN 'nothing, while the backward works'
            WHEN s.id IS NULL OR s.cat = 'user_annotation' THEN 'nothing recorded'
            WHEN r.kind IN ('device_sync', 'stream_sync', 'event_sync')
                THEN 'waiting for the device'
            WHEN r.id IS NOT NULL THEN 'runtime calls'
            WHEN s.cat = 'cpu_op' THEN 'operators'
            WHEN s.cat = 'python_function' THEN 'Python frames'
            ELSE 'other rows'
        END AS what
    FROM piece AS p
    JOIN carrier AS c ON c.rank = p.rank AND p.ts >= c.ts AND p.ts < c.end_ts
    LEFT JOIN slice AS s ON s.id = p.slice_id
    LEFT JOIN runtime AS r ON r.id = p.slice_id
    WHERE p.dur > 0
)
SELECT
    t.rank,
    t.what,
    SUM(t.dur) / ANY_VALUE(h.steps) AS step_dur,
    SUM(t.dur) / NULLIF(SUM(SUM(t.dur)) OVER (PARTITION BY t.rank), 0) AS time_frac
FROM told AS t
JOIN hosts AS h ON h.rank = t.rank
GROUP BY t.rank, t.what
ORDER BY t.rank, step_dur DESC, t.what

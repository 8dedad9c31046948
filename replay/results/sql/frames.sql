-- The innermost Python frame that covers at least half of each stretch of a host thread.
WITH
stretch AS (
    SELECT
        UNNEST($task) AS task,
        UNNEST($slice_id) AS slice_id,
        UNNEST($lo_ns) AS lo,
        UNNEST($hi_ns) AS hi
),
placed AS (
    SELECT t.*, s.utid, s.trace_id
    FROM stretch AS t
    JOIN store.slice AS s ON s.id = t.slice_id
),
covering AS (
    SELECT
        p.task,
        f.name_id,
        ROW_NUMBER() OVER (PARTITION BY p.task ORDER BY f.dur, f.id DESC) AS place
    FROM placed AS p
    JOIN store.slice AS f ON f.utid = p.utid AND f.trace_id = p.trace_id
    WHERE
        f.cat = 'python_function'
        AND f.ts < p.hi
        AND f.ts + f.dur > p.lo
        AND 2 * (LEAST(f.ts + f.dur, p.hi) - GREATEST(f.ts, p.lo)) >= p.hi - p.lo
)
SELECT c.task, COALESCE(n.name, '') AS name
FROM covering AS c
JOIN store.name AS n ON n.name_id = c.name_id
WHERE c.place = 1
ORDER BY c.task;

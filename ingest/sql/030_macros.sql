-- Public macros, and in schema `store` the sweeps that several views share. A sweep cuts time at
-- every start and end and counts what runs between, so its cost is that of one sort.

CREATE MACRO ms(x) AS x / 1e6;
COMMENT ON MACRO ms IS 'Nanoseconds as milliseconds.';

CREATE MACRO us(x) AS x / 1e3;
COMMENT ON MACRO us IS 'Nanoseconds as microseconds.';

CREATE MACRO to_unix(ts) AS ts + (SELECT MIN(o.ts_origin_ns) FROM store.trace AS o);
COMMENT ON MACRO to_unix IS
    'A ts of the store on the clock of the files: ns after 1970 where the profiler recorded that.';

CREATE MACRO size_bucket(bytes) AS CASE
    WHEN bytes IS NULL THEN NULL
    WHEN bytes < 1 THEN 0
    ELSE 1::BIGINT << (LENGTH(BIN(bytes::BIGINT)) - 1)
END;
COMMENT ON MACRO size_bucket IS 'The largest power of two that is not above the size, bytes.';

CREATE MACRO busbw(collective, bytes, n, dur) AS bytes / NULLIF(dur, 0) * CASE
    WHEN REGEXP_MATCHES(LOWER(REPLACE(collective, '_', '')), 'allreduce') THEN 2.0 * (n - 1) / n
    WHEN REGEXP_MATCHES(
        LOWER(REPLACE(collective, '_', '')), 'reducescatter|allgather|alltoall'
    ) THEN 1.0 * (n - 1) / n
    WHEN REGEXP_MATCHES(
        LOWER(REPLACE(collective, '_', '')), 'broadcast|reduce|send|recv|gather|scatter'
    ) THEN 1.0
END;
COMMENT ON MACRO busbw IS
    'Bus bandwidth as nccl-tests, GB/s (1e9): kind or recorded name, size S in bytes, ranks, ns.';

CREATE MACRO interval_union(source) AS TABLE
WITH
reached AS (
    SELECT
        i.rank,
        i.ts,
        i.ts + i.dur AS end_ts,
        MAX(i.ts + i.dur) OVER (
            PARTITION BY i.rank ORDER BY i.ts
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reach
    FROM QUERY_TABLE(source) AS i
    WHERE i.dur > 0
),
numbered AS (
    SELECT
        r.rank,
        r.ts,
        r.end_ts,
        SUM((r.reach IS NULL OR r.ts > r.reach)::BIGINT) OVER (
            PARTITION BY r.rank ORDER BY r.ts ROWS UNBOUNDED PRECEDING
        ) AS island
    FROM reached AS r
)
SELECT
    b.rank,
    MIN(b.ts) AS ts,
    (MAX(b.end_ts) - MIN(b.ts))::BIGINT AS dur
FROM numbered AS b
GROUP BY b.rank, b.island
ORDER BY b.rank, MIN(b.ts);
COMMENT ON MACRO TABLE interval_union IS
    'The stretches of each rank in which at least one row of a view with rank, ts and dur runs.';

CREATE MACRO slice_stack(slice_id) AS TABLE
WITH RECURSIVE up AS (
    SELECT
        s.id,
        s.parent_id,
        s.depth,
        s.name_id
    FROM store.slice AS s
    WHERE s.id = slice_id
    UNION ALL
    SELECT
        p.id,
        p.parent_id,
        p.depth,
        p.name_id
    FROM up AS u
    JOIN store.slice AS p ON p.id = u.parent_id
)
SELECT
    u.depth,
    u.id,
    n.name
FROM up AS u
JOIN store.name AS n ON n.name_id = u.name_id
ORDER BY u.depth;
COMMENT ON MACRO TABLE slice_stack IS 'A slice and all those around it, the outermost first.';

CREATE MACRO store.class_name(code) AS [
    'other', 'gemm', 'attention', 'convolution', 'normalisation', 'elementwise', 'reduction',
    'embedding', 'optimizer', 'collective', 'memcpy', 'memset'
][code + 1];
COMMENT ON MACRO store.class_name IS 'The word for a kernel class.';

CREATE MACRO store.phase_name(code) AS CASE code
    WHEN 1 THEN 'forward' WHEN 2 THEN 'backward' WHEN 3 THEN 'optimizer' ELSE 'unknown'
END;
COMMENT ON MACRO store.phase_name IS 'The word for a phase.';

-- Steps as the devices see them: a host that runs ahead must not shorten one. The moment of a
-- boundary is moved to the end of all device work launched before it, then to the latest rank.
CREATE VIEW step_window AS
WITH
shared AS (
    SELECT p.step
    FROM store.step AS p
    WHERE p.source = 'ProfilerStep' AND p.complete
    GROUP BY p.step
    HAVING COUNT(DISTINCT p.trace_id) = (SELECT COUNT(*) FROM store.trace)
),
island AS (
    SELECT
        c.step,
        c.step - ROW_NUMBER() OVER (ORDER BY c.step) AS island
    FROM shared AS c
),
counted AS (
    SELECT i.step
    FROM island AS i
    JOIN (
        SELECT j.island
        FROM island AS j
        GROUP BY j.island
        ORDER BY COUNT(*) DESC, j.island
        LIMIT 1
    ) AS longest ON longest.island = i.island
),
host_window AS (
    SELECT
        p.trace_id,
        p.step,
        MIN(p.ts) AS ts,
        ARG_MIN(p.ts + p.dur, p.ts) AS end_ts
    FROM store.step AS p
    JOIN counted AS c ON c.step = p.step
    WHERE p.source = 'ProfilerStep'
    GROUP BY p.trace_id, p.step
),
moment AS (
    SELECT
        h.trace_id,
        h.step,
        h.end_ts AS ts
    FROM host_window AS h
    UNION ALL
    SELECT
        h.trace_id,
        MIN(h.step) - 1,
        MIN(h.ts)
    FROM host_window AS h
    GROUP BY h.trace_id
),
launched AS (
    SELECT
        k.trace_id,
        COALESCE(
            MAX(r.ts) OVER (
                PARTITION BY k.trace_id, k.device, k.stream ORDER BY k.ts, k.ts + k.dur, k.id
                ROWS UNBOUNDED PRECEDING
            ),
            -(1::BIGINT << 60)
        ) AS launch_ts,
        k.ts + k.dur AS end_ts
    FROM store.kernel AS k
    LEFT JOIN store.slice AS r ON r.id = k.runtime_id
),
reach AS (
    SELECT
        d.trace_id,
        d.launch_ts,
        MAX(MAX(d.end_ts)) OVER (
            PARTITION BY d.trace_id ORDER BY d.launch_ts ROWS UNBOUNDED PRECEDING
        ) AS end_ts
    FROM launched AS d
    GROUP BY d.trace_id, d.launch_ts
),
boundary AS (
    SELECT
        m.step,
        MAX(GREATEST(m.ts, r.end_ts)) AS ts
    FROM moment AS m
    ASOF LEFT JOIN reach AS r ON r.trace_id = m.trace_id AND m.ts > r.launch_ts
    GROUP BY m.step
),
stop_call AS (
    SELECT ARG_MAX(r.id, s.ts) AS id
    FROM store.runtime AS r
    JOIN store.slice AS s ON s.id = r.id
    WHERE r.kind <> 0
    GROUP BY s.trace_id
    HAVING ARG_MAX(r.kind, s.ts) = 5
),
work AS (
    SELECT
        s.ts,
        s.ts + s.dur AS end_ts
    FROM store.slice AS s
    LEFT JOIN store.runtime AS r ON r.id = s.id
    WHERE (s.cat IN ('cpu_op', 'user_annotation', 'kernel', 'gpu_memcpy', 'gpu_memset', 'mtia_ccp_events') OR r.id IS NOT NULL)
        AND s.id NOT IN (SELECT e.id FROM stop_call AS e)
        AND NOT EXISTS (SELECT 1 FROM counted)
)
SELECT
    b.step,
    LAG(b.ts) OVER (ORDER BY b.step) AS ts,
    b.ts - LAG(b.ts) OVER (ORDER BY b.step) AS dur,
    TRUE AS is_recorded
FROM boundary AS b
QUALIFY LAG(b.ts) OVER (ORDER BY b.step) IS NOT NULL
UNION ALL
SELECT
    0 AS step,
    MIN(w.ts) AS ts,
    MAX(w.end_ts) - MIN(w.ts) AS dur,
    FALSE AS is_recorded
FROM work AS w
HAVING COUNT(*) > 0;
COMMENT ON VIEW step_window IS
    'Steps of the run: from boundary to boundary, each the later of the end of the hosts'' ProfilerStep and of all device work launched up to then, on all ranks.';
COMMENT ON COLUMN step_window.step IS 'Number of the step; 0 where none is recorded whole on all ranks.';
COMMENT ON COLUMN step_window.ts IS 'Start, ns after the run''s origin, on the common clock.';
COMMENT ON COLUMN step_window.dur IS 'Duration, ns.';
COMMENT ON COLUMN step_window.is_recorded IS
    'False where no ProfilerStep is whole on all ranks: then it is the whole recording.';

-- What named queries choose by `ranks`, `first_step` and `last_step`.
CREATE MACRO is_chosen(ranks, rank) AS
    ranks IS NULL OR LIST_CONTAINS(STRING_SPLIT(ranks::VARCHAR, ','), rank::VARCHAR);
COMMENT ON MACRO is_chosen IS 'Whether a rank is among these, as 0,1,5; each is where NULL.';

CREATE MACRO step_span(first_step, last_step) AS TABLE
SELECT
    MIN(w.ts) AS ts,
    MAX(w.ts + w.dur) AS end_ts,
    COUNT(*) AS steps
FROM step_window AS w
WHERE NOT w.is_recorded
    OR w.step BETWEEN COALESCE(first_step, w.step) AND COALESCE(last_step, w.step);
COMMENT ON MACRO TABLE step_span IS
    'From the first of these steps to the last, as devices see them, and how many: one row; NULL is all.';

CREATE MACRO host_span(ranks, first_step, last_step) AS TABLE
SELECT
    t.rank,
    MIN(COALESCE(p.ts, w.ts)) AS ts,
    MAX(COALESCE(p.ts + p.dur, w.ts + w.dur)) AS end_ts,
    COUNT(DISTINCT w.step) AS steps
FROM step_window AS w
CROSS JOIN trace AS t
LEFT JOIN step AS p
    ON p.trace_id = t.trace_id AND p.step = w.step AND p.source = 'ProfilerStep'
WHERE is_chosen(ranks, t.rank)
    AND (
        NOT w.is_recorded
        OR w.step BETWEEN COALESCE(first_step, w.step) AND COALESCE(last_step, w.step)
    )
GROUP BY t.rank;
COMMENT ON MACRO TABLE host_span IS
    'The same on the host of each of these ranks, which is often a step ahead of its devices.';

CREATE VIEW store.step_mark AS
SELECT
    w.ts,
    w.step
FROM step_window AS w
UNION ALL
SELECT
    MAX(w.ts + w.dur),
    -1
FROM step_window AS w
HAVING COUNT(*) > 0;
COMMENT ON VIEW store.step_mark IS 'Moments at which the step changes; -1 after the last one.';

CREATE VIEW store.device_point AS
WITH
waits AS (
    SELECT
        m.kernel_id,
        MAX(m.wait_dur) AS wait_dur
    FROM store.collective_rank AS m
    GROUP BY m.kernel_id
),
work AS (
    SELECT
        k.trace_id,
        k.rank,
        COALESCE(k.device, 0) AS device,
        k.ts,
        k.ts + k.dur AS end_ts,
        (k.class NOT IN (9, 10, 11))::INTEGER AS compute,
        (k.class = 9)::INTEGER AS comm,
        (k.class IN (10, 11))::INTEGER AS copying,
        LEAST(COALESCE(w.wait_dur, 0), k.dur) AS wait_dur
    FROM store.kernel AS k
    LEFT JOIN waits AS w ON w.kernel_id = k.id AND k.class = 9
),
edge AS (
    SELECT
        k.trace_id,
        k.rank,
        k.device,
        k.ts,
        k.compute,
        k.comm,
        k.copying,
        (k.wait_dur > 0)::INTEGER AS waiting,
        NULL::BIGINT AS step
    FROM work AS k
    UNION ALL
    SELECT k.trace_id, k.rank, k.device, k.end_ts, -k.compute, -k.comm, -k.copying, 0, NULL
    FROM work AS k
    UNION ALL
    SELECT k.trace_id, k.rank, k.device, k.ts + k.wait_dur, 0, 0, 0, -1, NULL
    FROM work AS k
    WHERE k.wait_dur > 0
    UNION ALL
    SELECT d.trace_id, d.rank, d.device, m.ts, 0, 0, 0, 0, m.step
    FROM (SELECT DISTINCT k.trace_id, k.rank, k.device FROM work AS k) AS d
    CROSS JOIN store.step_mark AS m
),
point AS (
    SELECT
        e.trace_id,
        e.rank,
        e.device,
        e.ts,
        SUM(e.compute) AS compute,
        SUM(e.comm) AS comm,
        SUM(e.copying) AS copying,
        SUM(e.waiting) AS waiting,
        MAX(e.step) AS step
    FROM edge AS e
    GROUP BY e.trace_id, e.rank, e.device, e.ts
)
SELECT
    p.trace_id,
    p.rank,
    p.device,
    p.ts,
    COALESCE(LEAD(p.ts) OVER swept - p.ts, 0) AS dur,
    NULLIF(LAST_VALUE(p.step IGNORE NULLS) OVER swept, -1) AS step,
    SUM(p.compute) OVER swept AS n_compute,
    SUM(p.comm) OVER swept AS n_comm,
    SUM(p.copying) OVER swept AS n_copying,
    SUM(p.waiting) OVER swept AS n_waiting
FROM point AS p
WINDOW swept AS (PARTITION BY p.trace_id, p.device, p.rank ORDER BY p.ts ROWS UNBOUNDED PRECEDING);
COMMENT ON VIEW store.device_point IS
    'What runs on a device from each start, end or change of step to the next.';

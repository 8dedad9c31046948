-- Can these traces be trusted, and for what? One row per rank and check.

CREATE VIEW trace_quality AS
WITH
device AS (
    SELECT
        k.trace_id,
        COUNT(*) AS n,
        SUM(k.dur) AS dur,
        COALESCE(SUM(k.dur) FILTER (k.runtime_id IS NULL), 0) AS unlinked_dur,
        COUNT(*) FILTER (s.repair IS NOT NULL) AS repaired
    FROM store.kernel AS k
    JOIN store.slice AS s ON s.id = k.id
    GROUP BY k.trace_id
),
member AS (
    SELECT
        m.rank,
        COUNT(*) AS n,
        COUNT(*) FILTER (m.state <> 'matched') AS unmatched,
        COUNT(*) FILTER (c.msg_bytes IS NULL) AS unsized
    FROM store.collective_rank AS m
    JOIN store.collective AS c ON c.coll_id = m.coll_id
    GROUP BY m.rank
),
graph AS (
    SELECT
        s.trace_id,
        COUNT(*) AS n,
        COUNT(*) FILTER (r.n_gpu_events = 0) AS bare
    FROM store.runtime AS r
    JOIN store.slice AS s ON s.id = r.id
    WHERE r.kind = 2
    GROUP BY s.trace_id
),
covered AS (
    SELECT
        k.rank,
        COUNT(DISTINCT w.step) AS n
    FROM store.kernel AS k
    JOIN step_window AS w ON k.ts >= w.ts AND k.ts < w.ts + w.dur
    GROUP BY k.rank
),
steps AS (
    SELECT
        COUNT(*) AS n,
        COUNT(*) FILTER (w.is_recorded) AS recorded,
        MAX(w.dur) / NULLIF(MEDIAN(w.dur), 0) AS longest
    FROM step_window AS w
),
overhead AS (
    SELECT
        s.trace_id,
        SUM(s.dur) AS dur
    FROM store.slice AS s
    WHERE s.cat = 'overhead'
    GROUP BY s.trace_id
),
issue AS (
    SELECT
        i.trace_id,
        COALESCE(SUM(i.value) FILTER (i.severity IN ('data_loss', 'error')), 0) AS lost
    FROM store.import_stat AS i
    GROUP BY i.trace_id
),
failed AS (
    SELECT COALESCE(SUM(i.value), 0) AS n
    FROM store.import_stat AS i
    WHERE i.name = 'file_failed'
),
fact AS (
    SELECT
        t.rank,
        t.complete,
        t.rank_source,
        t.has_shapes,
        t.has_stacks,
        t.has_sync_events,
        t.clock_uncertainty_ns,
        GREATEST(COALESCE(t.world_size, 0) - (SELECT COUNT(*) FROM store.trace), 0) AS missing,
        (SELECT f.n FROM failed AS f) AS failed,
        COALESCE(i.lost, 0) AS lost,
        COALESCE(d.n, 0) AS device_rows,
        d.unlinked_dur / NULLIF(d.dur, 0) AS unlinked_frac,
        d.repaired / NULLIF(d.n, 0) AS repaired_frac,
        m.unmatched / NULLIF(m.n, 0) AS unmatched_frac,
        m.unsized / NULLIF(m.n, 0) AS unsized_frac,
        g.bare / NULLIF(g.n, 0) AS bare_frac,
        1 - COALESCE(c.n, 0) / NULLIF(s.n, 0) AS bare_steps_frac,
        s.recorded AS steps,
        s.longest,
        COALESCE(o.dur, 0) / NULLIF(t.last_ts - t.first_ts, 0) AS overhead_frac
    FROM store.trace AS t
    CROSS JOIN steps AS s
    LEFT JOIN issue AS i ON i.trace_id = t.trace_id
    LEFT JOIN device AS d ON d.trace_id = t.trace_id
    LEFT JOIN member AS m ON m.rank = t.rank
    LEFT JOIN graph AS g ON g.trace_id = t.trace_id
    LEFT JOIN covered AS c ON c.rank = t.rank
    LEFT JOIN overhead AS o ON o.trace_id = t.trace_id
),
measured AS (
    SELECT
        f.rank,
        UNNEST([
            {'name': 'truncated', 'value': (NOT f.complete)::DOUBLE, 'care': 0, 'distrust': 1, 'affects': 'whatever the missing end holds; totals are too low'},
            {'name': 'lost_events', 'value': f.lost, 'care': 0, 'distrust': 1000, 'affects': 'all sums: events or header keys were left out'},
            {'name': 'failed_files', 'value': f.failed, 'care': 0, 'distrust': 1000, 'affects': 'everything across ranks'},
            {'name': 'missing_ranks', 'value': f.missing, 'care': 0, 'distrust': 1e9, 'affects': 'waits and stragglers: the slowest rank may be among the missing'},
            {'name': 'guessed_rank', 'value': (f.rank_source <> 'distributedInfo')::DOUBLE, 'care': 0, 'distrust': 2, 'affects': 'which rank is which'},
            {'name': 'clock_uncertainty_ns', 'value': f.clock_uncertainty_ns, 'care': 20000, 'distrust': 1000000, 'affects': 'waits and skews below it'},
            {'name': 'no_steps', 'value': (f.steps = 0)::DOUBLE, 'care': 0, 'distrust': 2, 'affects': 'everything by step: the recording counts as one step; use schedule() and step()'},
            {'name': 'longest_step_factor', 'value': f.longest, 'care': 1.5, 'distrust': 1e9, 'affects': 'means over steps: one is much longer than the median'},
            {'name': 'no_device_work', 'value': (f.device_rows = 0)::DOUBLE, 'care': 0, 'distrust': 0, 'affects': 'all device views; use ProfilerActivity.CUDA'},
            {'name': 'steps_without_device_frac', 'value': CASE WHEN f.device_rows > 0 THEN f.bare_steps_frac END, 'care': 0, 'distrust': 0.2, 'affects': 'idle time: device work of some steps was not recorded'},
            {'name': 'unlinked_frac', 'value': f.unlinked_frac, 'care': 0.05, 'distrust': 0.5, 'affects': 'operators, modules, phases and causes of idle time'},
            {'name': 'repaired_frac', 'value': f.repaired_frac, 'care': 0.01, 'distrust': 0.2, 'affects': 'start times on the device'},
            {'name': 'unmatched_frac', 'value': f.unmatched_frac, 'care': 0.01, 'distrust': 0.5, 'affects': 'waits, skews and stragglers'},
            {'name': 'unsized_frac', 'value': f.unsized_frac, 'care': 0, 'distrust': 2, 'affects': 'bandwidth of collectives'},
            {'name': 'graph_launches_without_kernels_frac', 'value': f.bare_frac, 'care': 0, 'distrust': 0.1, 'affects': 'idle time: kernels of CUDA graphs were not recorded'},
            {'name': 'profiler_overhead_frac', 'value': f.overhead_frac, 'care': 0.05, 'distrust': 0.25, 'affects': 'host time'},
            {'name': 'no_shapes', 'value': (NOT f.has_shapes)::DOUBLE, 'care': 0, 'distrust': 2, 'affects': 'op_shape_summary and kernel models; use record_shapes'},
            {'name': 'no_stacks', 'value': (NOT f.has_stacks)::DOUBLE, 'care': 0, 'distrust': 2, 'affects': 'python_hot and module_summary; use with_stack'},
            {'name': 'no_sync_events', 'value': (NOT f.has_sync_events)::DOUBLE, 'care': 0, 'distrust': 2, 'affects': 'which stream waits for which; use enable_cuda_sync_events'}
        ]) AS one
    FROM fact AS f
)
SELECT
    m.rank,
    m.one.name AS check_name,
    CASE
        WHEN m.one.value IS NULL THEN 'not applicable'
        WHEN m.one.value <= m.one.care THEN 'ok'
        WHEN m.one.value > m.one.distrust THEN 'distrust'
        ELSE 'care'
    END AS verdict,
    m.one.value AS value,
    m.one.care::DOUBLE AS threshold,
    m.one.affects AS affects
FROM measured AS m
ORDER BY m.rank;
COMMENT ON VIEW trace_quality IS 'Can this trace be trusted, and for what?';
COMMENT ON COLUMN trace_quality.rank IS 'Rank of the file.';
COMMENT ON COLUMN trace_quality.check_name IS 'What was looked at; _frac is a share, 0 to 1.';
COMMENT ON COLUMN trace_quality.verdict IS
    'ok, care (use what it affects with care), distrust, or not applicable.';
COMMENT ON COLUMN trace_quality.value IS 'What was found; 1 for yes and 0 for no.';
COMMENT ON COLUMN trace_quality.threshold IS 'Above it the verdict is no longer ok.';
COMMENT ON COLUMN trace_quality.affects IS 'What is wrong or missing then, and the profiler option that helps.';

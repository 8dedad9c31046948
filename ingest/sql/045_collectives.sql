-- Collectives over the ranks: bandwidth by size, who came late, who paid for it.

CREATE VIEW collective_summary AS
WITH
paid AS (
    SELECT
        m.coll_id,
        SUM(m.wait_dur)::BIGINT AS wait_dur,
        SUM(m.transfer_dur)::BIGINT AS transfer_dur,
        SUM(e.exposed_dur)::BIGINT AS exposed_dur
    FROM store.collective_rank AS m
    LEFT JOIN kernel_exposure AS e ON e.id = m.kernel_id
    GROUP BY m.coll_id
)
SELECT
    c.kind,
    c.pg_key,
    c.group_size,
    c.dtype,
    c.msg_bytes,
    COUNT(*) AS operations,
    MEDIAN(c.transfer_dur) AS med_transfer_dur,
    MEDIAN(c.busbw) AS med_busbw,
    SUM(c.last_arrival - c.first_arrival)::BIGINT AS skew_dur,
    QUANTILE_CONT(c.busbw, 0.95) AS p95_busbw,
    SUM(p.transfer_dur)::BIGINT AS transfer_dur,
    SUM(p.wait_dur)::BIGINT AS wait_dur,
    SUM(p.exposed_dur)::BIGINT AS exposed_dur
FROM collective AS c
LEFT JOIN paid AS p ON p.coll_id = c.coll_id
GROUP BY c.kind, c.pg_key, c.group_size, c.dtype, c.msg_bytes;
COMMENT ON VIEW collective_summary IS
    'Collectives by kind, communicator and size, over all ranks.';
COMMENT ON COLUMN collective_summary.kind IS 'Kind.';
COMMENT ON COLUMN collective_summary.pg_key IS 'Communicator.';
COMMENT ON COLUMN collective_summary.group_size IS 'Ranks of the communicator.';
COMMENT ON COLUMN collective_summary.dtype IS 'Element type.';
COMMENT ON COLUMN collective_summary.msg_bytes IS 'Size of nccl-tests, bytes.';
COMMENT ON COLUMN collective_summary.operations IS 'How many; an operation counts once for all ranks.';
COMMENT ON COLUMN collective_summary.med_transfer_dur IS 'Median transfer, ns.';
COMMENT ON COLUMN collective_summary.med_busbw IS 'Median bus bandwidth, GB/s (1e9).';
COMMENT ON COLUMN collective_summary.skew_dur IS
    'Sum over operations of last minus first arrival, ns.';
COMMENT ON COLUMN collective_summary.p95_busbw IS
    '95th percentile of the bus bandwidth, what the fast ones reach, GB/s (1e9).';
COMMENT ON COLUMN collective_summary.transfer_dur IS 'Sum of transfers over members, ns.';
COMMENT ON COLUMN collective_summary.wait_dur IS 'Sum of waits over members, ns.';
COMMENT ON COLUMN collective_summary.exposed_dur IS
    'Sum over members of the time that no compute hides, ns; NULL on hosts.';

CREATE VIEW collective_skew AS
WITH
paid AS (
    SELECT
        m.coll_id,
        ARG_MIN(m.rank, m.ts) AS first_rank,
        SUM(m.wait_dur)::BIGINT AS wait_dur,
        MAX(t.clock_uncertainty_ns) AS clock_uncertainty_dur
    FROM store.collective_rank AS m
    JOIN store.trace AS t ON t.rank = m.rank
    GROUP BY m.coll_id
)
SELECT
    c.coll_id,
    c.kind,
    c.pg_key,
    c.seq,
    c.msg_bytes,
    w.step,
    c.first_arrival AS ts,
    c.n_seen,
    p.first_rank,
    c.last_rank,
    c.last_arrival - c.first_arrival AS skew_dur,
    p.wait_dur,
    c.last_arrival - c.first_arrival > p.clock_uncertainty_dur AS is_resolvable
FROM collective AS c
JOIN paid AS p ON p.coll_id = c.coll_id
LEFT JOIN step_window AS w ON c.first_arrival >= w.ts AND c.first_arrival < w.ts + w.dur
WHERE c.n_seen > 1;
COMMENT ON VIEW collective_skew IS 'Who came first and last to each operation, and by how much.';
COMMENT ON COLUMN collective_skew.coll_id IS 'Operation.';
COMMENT ON COLUMN collective_skew.kind IS 'Kind.';
COMMENT ON COLUMN collective_skew.pg_key IS 'Communicator.';
COMMENT ON COLUMN collective_skew.seq IS 'Seq, as recorded.';
COMMENT ON COLUMN collective_skew.msg_bytes IS 'Size of nccl-tests, bytes.';
COMMENT ON COLUMN collective_skew.step IS 'Step of step_window in which it begins; NULL outside.';
COMMENT ON COLUMN collective_skew.ts IS 'First arrival, ns after the run''s origin, on the common clock.';
COMMENT ON COLUMN collective_skew.n_seen IS 'Members in these files; two or more.';
COMMENT ON COLUMN collective_skew.first_rank IS 'Rank that came first.';
COMMENT ON COLUMN collective_skew.last_rank IS 'Rank that came last.';
COMMENT ON COLUMN collective_skew.skew_dur IS 'Last minus first arrival, ns.';
COMMENT ON COLUMN collective_skew.wait_dur IS 'Sum of the waits of its members, ns.';
COMMENT ON COLUMN collective_skew.is_resolvable IS
    'The skew is above the uncertainty of the clocks of its ranks.';

CREATE VIEW collective_wait AS
WITH
last AS (
    SELECT m.coll_id, ARG_MAX(m.kernel_id, (m.ts, m.kernel_id)) AS kernel_id
    FROM store.collective_rank AS m
    GROUP BY m.coll_id
    HAVING COUNT(*) > 1
),
pair AS (
    SELECT m.kernel_id, UNNEST(m.waits_for) AS other_id FROM store.collective_rank AS m
),
awaited AS (
    SELECT p.kernel_id, ARG_MAX(o.kernel_id, (o.ts, -o.kernel_id)) AS late_id
    FROM pair AS p
    JOIN store.collective_rank AS o ON o.kernel_id = p.other_id
    GROUP BY p.kernel_id
),
waiting AS (
    SELECT
        m.coll_id,
        m.rank,
        m.kernel_id,
        IF(m.waits_for IS NULL, t.kernel_id, a.late_id) AS late_id,
        m.wait_dur - m.outside_wait_dur AS wait_dur
    FROM store.collective_rank AS m
    JOIN last AS t ON t.coll_id = m.coll_id
    LEFT JOIN awaited AS a ON a.kernel_id = m.kernel_id
)
SELECT
    w.coll_id,
    w.rank,
    w.kernel_id,
    o.rank AS late_rank,
    o.kernel_id AS late_kernel_id,
    w.wait_dur
FROM waiting AS w
JOIN store.collective_rank AS o ON o.kernel_id = w.late_id
WHERE o.rank <> w.rank AND w.wait_dur > 0;
COMMENT ON VIEW collective_wait IS
    'Which member waited for which: the last one of its operation, or its own partner or root.';
COMMENT ON COLUMN collective_wait.coll_id IS 'Operation.';
COMMENT ON COLUMN collective_wait.rank IS 'Rank that waited.';
COMMENT ON COLUMN collective_wait.kernel_id IS 'Slice of its member.';
COMMENT ON COLUMN collective_wait.late_rank IS 'Rank that it waited for.';
COMMENT ON COLUMN collective_wait.late_kernel_id IS 'Slice of the member of that rank.';
COMMENT ON COLUMN collective_wait.wait_dur IS
    'How long, ns; waiting for ranks without a file is not in it.';

CREATE VIEW collective_late AS
WITH
last AS (
    SELECT m.coll_id, ARG_MAX(m.kernel_id, (m.ts, m.kernel_id)) AS kernel_id
    FROM store.collective_rank AS m
    GROUP BY m.coll_id
    HAVING COUNT(*) > 1
),
late AS (
    SELECT
        w.coll_id,
        w.late_kernel_id,
        COUNT(*) AS waiting,
        SUM(w.wait_dur)::BIGINT AS wait_dur
    FROM collective_wait AS w
    GROUP BY w.coll_id, w.late_kernel_id
)
SELECT
    m.coll_id,
    m.rank,
    m.kernel_id,
    COALESCE(l.waiting, 0) AS waiting,
    COALESCE(l.wait_dur, 0) AS wait_dur
FROM last AS t
LEFT JOIN late AS l ON l.coll_id = t.coll_id
JOIN store.collective_rank AS m ON m.kernel_id = COALESCE(l.late_kernel_id, t.kernel_id);
COMMENT ON VIEW collective_late IS
    'Whom the members of each operation waited for: the last one, or its own partners and roots.';
COMMENT ON COLUMN collective_late.coll_id IS 'Operation with two members or more in these files.';
COMMENT ON COLUMN collective_late.rank IS
    'Rank that others waited for; the last one where nobody waited.';
COMMENT ON COLUMN collective_late.kernel_id IS 'Slice of its member.';
COMMENT ON COLUMN collective_late.waiting IS 'How many members waited for it.';
COMMENT ON COLUMN collective_late.wait_dur IS 'Sum of what these waited, ns.';

CREATE VIEW straggler AS
WITH
member AS (
    SELECT
        m.rank,
        m.wait_dur,
        s.is_resolvable AND l.rank IS NOT NULL AS is_last,
        l.wait_dur AS others_wait_dur,
        call.ts + call.dur > s.ts AS is_host_late
    FROM store.collective_rank AS m
    JOIN collective_skew AS s ON s.coll_id = m.coll_id
    LEFT JOIN collective_late AS l ON l.kernel_id = m.kernel_id
    LEFT JOIN store.kernel AS k ON k.id = m.kernel_id
    LEFT JOIN store.slice AS call ON call.id = k.runtime_id
)
SELECT
    m.rank,
    COUNT(*) AS operations,
    COUNT(*) FILTER (m.is_last) AS times_last,
    COUNT(*) FILTER (m.is_last) / COUNT(*) AS last_frac,
    COALESCE(SUM(m.others_wait_dur) FILTER (m.is_last), 0)::BIGINT AS caused_wait_dur,
    SUM(m.wait_dur)::BIGINT AS own_wait_dur,
    COALESCE(
        SUM(m.others_wait_dur) FILTER (m.is_last AND m.is_host_late), 0
    )::BIGINT AS host_late_wait_dur
FROM member AS m
GROUP BY m.rank
ORDER BY m.rank;
COMMENT ON VIEW straggler IS 'Which rank comes last to collectives, and what that costs the others.';
COMMENT ON COLUMN straggler.rank IS 'Rank.';
COMMENT ON COLUMN straggler.operations IS 'Operations in which it and another rank are seen.';
COMMENT ON COLUMN straggler.times_last IS
    'In how many it came last of those that some member waited for, by more than the clocks are uncertain.';
COMMENT ON COLUMN straggler.last_frac IS 'Share of its operations, 0 to 1.';
COMMENT ON COLUMN straggler.caused_wait_dur IS
    'Sum of what the others waited for it in these, ns.';
COMMENT ON COLUMN straggler.own_wait_dur IS 'Sum of what it waited for others, ns.';
COMMENT ON COLUMN straggler.host_late_wait_dur IS
    'Part of caused_wait_dur where its host launched after the first rank had arrived, ns; in the rest its device was late.';

CREATE VIEW collective_exposure AS
WITH
member AS (
    SELECT
        k.id,
        k.trace_id,
        k.rank,
        COALESCE(k.device, 0) AS device,
        k.ts,
        k.ts + k.dur AS end_ts,
        MAX(k.ts + k.dur) OVER (
            PARTITION BY k.trace_id, COALESCE(k.device, 0) ORDER BY k.ts, k.id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reach
    FROM store.kernel AS k
    WHERE k.class = 9
),
piece AS (
    SELECT
        m.id,
        m.trace_id,
        m.rank,
        m.device,
        w.step,
        GREATEST(m.ts, COALESCE(m.reach, m.ts), w.ts) AS ts,
        LEAST(m.end_ts, w.ts + w.dur) AS end_ts
    FROM member AS m
    JOIN step_window AS w
        ON GREATEST(m.ts, COALESCE(m.reach, m.ts)) < w.ts + w.dur AND m.end_ts > w.ts
    WHERE m.end_ts > COALESCE(m.reach, m.ts)
),
summed AS (
    SELECT
        p.trace_id,
        p.device,
        p.ts,
        COALESCE(SUM(p.dur) FILTER (p.n_compute > 0) OVER before, 0)::BIGINT AS compute_dur,
        COALESCE(
            SUM(p.dur) FILTER (p.n_compute = 0 AND p.n_comm = p.n_waiting) OVER before, 0
        )::BIGINT AS waiting_dur
    FROM store.device_point AS p
    WINDOW before AS (
        PARTITION BY p.trace_id, p.device ORDER BY p.ts
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
)
SELECT
    p.id AS kernel_id,
    p.rank,
    p.device,
    p.step,
    p.end_ts - p.ts AS comm_dur,
    b.compute_dur - a.compute_dur AS hidden_dur,
    (p.end_ts - p.ts) - (b.compute_dur - a.compute_dur) AS exposed_dur,
    b.waiting_dur - a.waiting_dur AS exposed_wait_dur
FROM piece AS p
JOIN summed AS a ON a.trace_id = p.trace_id AND a.device = p.device AND a.ts = p.ts
JOIN summed AS b ON b.trace_id = p.trace_id AND b.device = p.device AND b.ts = p.end_ts;
COMMENT ON VIEW collective_exposure IS
    'Which member of a collective the time of communication belongs to: at each moment of a step and device to the one that began first of those that run. Adds up to comm_dur, exposed_comm_dur and exposed_wait_dur of gpu_timeline.';
COMMENT ON COLUMN collective_exposure.kernel_id IS
    'Slice of the member; one that runs only beside others that began before it has no row.';
COMMENT ON COLUMN collective_exposure.rank IS 'Rank.';
COMMENT ON COLUMN collective_exposure.device IS 'Device number.';
COMMENT ON COLUMN collective_exposure.step IS
    'Step of step_window; a member over a boundary has a row in both.';
COMMENT ON COLUMN collective_exposure.comm_dur IS 'Its time, ns.';
COMMENT ON COLUMN collective_exposure.hidden_dur IS 'Part in which a compute kernel runs, ns.';
COMMENT ON COLUMN collective_exposure.exposed_dur IS 'The rest: no compute kernel runs, ns.';
COMMENT ON COLUMN collective_exposure.exposed_wait_dur IS
    'Part of exposed_dur in which all communication of the device waits for other ranks, ns.';

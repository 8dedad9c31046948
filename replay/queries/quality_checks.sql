-- name quality_checks
-- description What to use with care in these files, or not at all: the checks of trace_quality over
--     all ranks, the worst first.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param with_ok BOOLEAN false Also those that are ok.
SELECT
    q.check_name,
    MAX(q.verdict) FILTER (q.verdict = 'distrust') IS NOT NULL AS distrust,
    COUNT(*) FILTER (q.verdict <> 'ok') AS ranks,
    MAX(q.value) AS worst,
    ANY_VALUE(q.threshold) AS threshold,
    ANY_VALUE(q.affects) AS affects
FROM trace_quality AS q
WHERE
    (q.verdict IN ('care', 'distrust') OR ($with_ok AND q.verdict = 'ok'))
    AND is_chosen($ranks, q.rank)
GROUP BY q.check_name
ORDER BY distrust DESC, ranks DESC, q.check_name

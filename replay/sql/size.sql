-- How many files and events a run has.
SELECT COUNT(*) AS files, COALESCE(SUM(n_events), 0)::BIGINT AS events FROM trace

-- Arguments of rows, as written.
SELECT a.id AS slice_id, a.args AS args
FROM slice_args AS a
WHERE a.id IN (SELECT UNNEST($slice_ids));

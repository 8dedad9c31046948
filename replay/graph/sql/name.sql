-- Every name once; the position of a row is its id.
SELECT n.name AS name FROM store.name AS n ORDER BY n.name_id;

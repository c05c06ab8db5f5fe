-- Example 3.1 of `dbtoaster-batch-ivm` with EXISTS for a condition: (X := Q_n) ⋈ (X ≠ 0) is N1(b), the groups of M_S
-- that exist.
CREATE STREAM r (a INT NOT NULL, b INT NOT NULL) USING csv OPTIONS (path 'data/r.csv');
CREATE STREAM s (b INT NOT NULL, c INT NOT NULL) USING csv OPTIONS (path 'data/s.csv');

SELECT COUNT(*) FROM r WHERE EXISTS (SELECT * FROM s WHERE r.b = s.b);

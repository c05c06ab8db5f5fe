-- Example 2.1 of `dbtoaster-batch-ivm`; its triggers are those of Example 2.2.
CREATE STREAM r (a INT NOT NULL, b INT NOT NULL) USING csv OPTIONS (path 'data/r.csv');
CREATE STREAM s (b INT NOT NULL, c INT NOT NULL) USING csv OPTIONS (path 'data/s.csv');
CREATE STREAM t (c INT NOT NULL, d INT NOT NULL) USING csv OPTIONS (path 'data/t.csv');

SELECT r.b, COUNT(*) FROM r, s, t WHERE r.b = s.b AND s.c = t.c GROUP BY r.b;

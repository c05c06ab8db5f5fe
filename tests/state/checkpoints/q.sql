CREATE STREAM r (k BIGINT, v BIGINT) USING csv OPTIONS (path 'r.csv');
CREATE STREAM s (k BIGINT, name VARCHAR) USING csv OPTIONS (path 's.csv');
SELECT name, COUNT(*) AS n, SUM(v) AS total, MAX(v) AS most FROM r JOIN s ON r.k = s.k GROUP BY name;

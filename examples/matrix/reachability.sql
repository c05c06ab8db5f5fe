-- How many airports can be reached from each in at most four flights.
--   squall run examples/matrix/reachability.sql --batch-rows 3 --mode changes
CREATE STREAM flights (origin INT, destination INT) USING csv OPTIONS (path 'flights.csv', header 'true');

CREATE MATRIX G (n, n) FROM STREAM flights (origin, destination);

CREATE MATRIX PROGRAM reach OVER boolean AS $$ R := iterate[4](eye(n))(acc => G * acc + eye(n)) $$;

SELECT i AS origin, COUNT(*) - 1 AS reached FROM reach.R GROUP BY i;

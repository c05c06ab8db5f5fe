-- An equality of an expression over two streams with a column of a third: the expression is the key of lookups.
CREATE STREAM parts (part INT, made_at INT) USING csv OPTIONS (path 'parts.csv');
CREATE STREAM tests (part INT, seconds INT) USING csv OPTIONS (path 'tests.csv');
CREATE STREAM alarms (at BIGINT, machine INT) USING csv OPTIONS (path 'alarms.csv');

SELECT machine, COUNT(*) AS parts
FROM parts JOIN tests ON parts.part = tests.part JOIN alarms ON alarms.at = made_at + seconds
GROUP BY machine;

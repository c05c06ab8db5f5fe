CREATE STREAM r (a INT, b INT, c BOOLEAN) USING csv OPTIONS (path 'r', op 'op');
CREATE STREAM s (b INT, d INT) USING csv OPTIONS (path 's', op 'op');
CREATE STREAM w (t TIMESTAMP, e INT) USING csv OPTIONS (path 'w', op 'op') TIMESTAMP BY t;
CREATE STREAM u (x INT PRIMARY KEY, y INT) USING csv OPTIONS (path 'u', op 'op');
CREATE STREAM v (y INT PRIMARY KEY, z INT) USING csv OPTIONS (path 'v', op 'op');
CREATE STREAM p (t TIMESTAMP, d INT) USING csv OPTIONS (path 'p', op 'op') TIMESTAMP BY t;
CREATE STREAM k (k INT PRIMARY KEY, l INT) USING csv OPTIONS (path 'k', op 'op');

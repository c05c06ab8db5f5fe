-- What trades have paid above the last bid before them (docs/auxiliary.md).
CREATE STREAM trades (symbol VARCHAR, time TIMESTAMP, price DECIMAL(12, 2)) USING csv OPTIONS (path 'trades.csv');
CREATE STREAM quotes (symbol VARCHAR, time TIMESTAMP, bid DECIMAL(12, 2)) USING csv OPTIONS (path 'quotes.csv');

SELECT t.symbol, SUM(t.price - q.bid) AS paid
FROM trades AS t JOIN quotes AS q ON q.symbol = t.symbol
WHERE q.time = (SELECT MAX(l.time) FROM quotes AS l WHERE l.symbol = t.symbol AND l.time <= t.time)
GROUP BY t.symbol;

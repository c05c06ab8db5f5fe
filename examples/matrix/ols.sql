-- What houses cost by their size and rooms: least squares, fresh with each house that is sold.
--   squall run examples/matrix/ols.sql --batch-rows 8 --mode changes
CREATE STREAM houses (house INT, feature INT, value DOUBLE) USING csv OPTIONS (path 'houses.csv', header 'true');
CREATE STREAM prices (house INT, kind INT, price DOUBLE) USING csv OPTIONS (path 'prices.csv', header 'true');

CREATE MATRIX X (m, 3) FROM STREAM houses (house, feature, value);  -- m grows with the data
CREATE MATRIX Y (m, 1) FROM STREAM prices (house, kind, price);

CREATE MATRIX PROGRAM ols AS $$ beta := inv(X' * X) * X' * Y $$;

SELECT CASE i WHEN 0 THEN 'a house' WHEN 1 THEN 'a square metre' ELSE 'a room' END AS item, ROUND(value, 2) AS price
FROM ols.beta;

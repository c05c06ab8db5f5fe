-- Which figures of houses depend on each other, as the tree of them with the largest sum of mutual information.
--   squall run examples/fivm/depends.sql --batch-rows 20 --mode changes
CREATE STREAM houses (postcode INT, rooms INT, size DOUBLE, price DOUBLE)
USING csv OPTIONS (path 'houses.csv', header 'true');
CREATE STREAM shops (postcode INT, shops INT) USING csv OPTIONS (path 'shops.csv', header 'true');

SELECT a, b, ROUND(value, 3) AS nats
FROM chow_liu(TABLE(SELECT rooms, CAST(price / 100 AS INT) AS price, shops FROM houses NATURAL JOIN shops));

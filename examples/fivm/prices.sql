-- What houses cost by their size, the shops and the schools near them: least squares over a join that is never built.
--   squall run examples/fivm/prices.sql --batch-rows 20 --mode changes
CREATE STREAM houses (postcode INT, rooms INT, size DOUBLE, price DOUBLE)
USING csv OPTIONS (path 'houses.csv', header 'true');
CREATE STREAM shops (postcode INT, shops INT) USING csv OPTIONS (path 'shops.csv', header 'true');
CREATE TABLE schools (postcode INT, pupils INT, PRIMARY KEY (postcode)) USING csv OPTIONS (path 'schools.csv', header 'true');

SELECT feature, ROUND(coefficient, 2) AS coefficient
FROM ols(TABLE(SELECT rooms, size, shops, pupils, price FROM houses NATURAL JOIN shops NATURAL JOIN schools),
         'price', intercept => TRUE);

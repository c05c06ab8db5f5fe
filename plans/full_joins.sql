-- FULL JOINs on one key: each value of the key, with the rows of each stream that have it, or NULLs.
CREATE STREAM visits (customer INT, pages INT) USING csv OPTIONS (path 'visits.csv');
CREATE STREAM orders (customer INT, price INT) USING csv OPTIONS (path 'orders.csv');
CREATE STREAM complaints (customer INT, text VARCHAR) USING csv OPTIONS (path 'complaints.csv');

SELECT customer, SUM(pages) AS pages, SUM(price) AS paid, COUNT(text) AS complaints
FROM visits FULL JOIN orders USING (customer) FULL JOIN complaints USING (customer)
GROUP BY customer;

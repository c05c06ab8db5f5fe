-- How many of each part a product needs, over all levels; UNION ALL keeps a part as often as it is built in.
--   squall run examples/recursion/bill_of_materials.sql --backend local --mode changes --batch-rows 4
CREATE STREAM parts (whole VARCHAR NOT NULL, part VARCHAR NOT NULL, quantity INT NOT NULL)
    USING csv OPTIONS (path 'parts.csv', op 'op');

WITH RECURSIVE needs AS (
    SELECT whole, part, CAST(quantity AS BIGINT) AS quantity, 1 AS depth FROM parts
    UNION ALL
    SELECT n.whole, p.part, n.quantity * p.quantity, n.depth + 1
    FROM needs AS n JOIN parts AS p ON n.part = p.whole
    WHERE n.depth < 20
)
SELECT whole, part, SUM(quantity) AS quantity, MAX(depth) AS depth
FROM needs
GROUP BY whole, part
ORDER BY whole, part;

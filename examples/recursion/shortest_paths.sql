-- The shortest way from Bern to each town, while roads open and close; MIN over the whole query.
--   squall run examples/recursion/shortest_paths.sql --backend local --mode changes --batch-rows 4
CREATE STREAM roads (a VARCHAR NOT NULL, b VARCHAR NOT NULL, km INT NOT NULL)
    USING csv OPTIONS (path 'roads.csv', op 'op');

WITH RECURSIVE distances(town, km) AS (
    SELECT town, MIN(km)
    FROM (
        SELECT 'Bern' AS town, 0 AS km
        UNION ALL
        SELECT r.b, d.km + r.km FROM distances AS d JOIN roads AS r ON d.town = r.a
    ) AS ways
    GROUP BY town
)
SELECT town, km FROM distances ORDER BY km, town;

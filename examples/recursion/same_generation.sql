-- Who is of the same generation: siblings, and the children of two who are.
--   squall run examples/recursion/same_generation.sql --backend local --mode changes --batch-rows 4
CREATE STREAM parents (child VARCHAR NOT NULL, parent VARCHAR NOT NULL)
    USING csv OPTIONS (path 'parents.csv', op 'op');

WITH RECURSIVE same_generation AS (
    SELECT a.child AS a, b.child AS b FROM parents AS a JOIN parents AS b ON a.parent = b.parent
    UNION
    SELECT a.child, b.child
    FROM parents AS a JOIN same_generation AS s ON a.parent = s.a JOIN parents AS b ON s.b = b.parent
)
SELECT a, b FROM same_generation WHERE a < b ORDER BY a, b;

-- Example 3.3 of `dbtoaster-batch-ivm`: a nested aggregate without correlation, whose domain binds nothing.
--
--   the paper                                                 here
--   re-evaluate over Sum_[A](R(A, B) ⋈ (B = 10))              ON UPDATE N1: M_R(a), once for a batch and only if the
--                                                             count has changed; a sorted index sums it up in O(log n)
--   for ΔR, the nested result as a single variable            ON UPDATE R: M_N1(count), one record
CREATE STREAM r (a INT NOT NULL, b INT NOT NULL) USING csv OPTIONS (path 'data/r.csv');
CREATE STREAM s (b INT NOT NULL, c INT NOT NULL) USING csv OPTIONS (path 'data/s.csv');

SELECT COUNT(*) FROM r WHERE r.a < (SELECT COUNT(*) FROM s) AND r.b = 10;

-- Example 3.1 of `dbtoaster-batch-ivm`: a nested aggregate, correlated by equality.
--
--   the paper                                                 here
--   Q_n := Sum_[](S(B2, C) ⋈ (B = B2)), for each B            G_N1(b), all of them, as a view
--   (X := Q_n)                                                N1(b, count): a relation of the groups that S has or R asks for
--   R(A, B) ⋈ (X := Q_n) ⋈ (A < X)                            R(a, b) ⋈ N1(b, count) ⋈ (a < count)
--   X = 0 where S has no B                                    Sum_[b](R(b) ⋈ ⟨1, 0⟩) in G_N1: the groups of R, where nothing is counted
--   Δ(X := Q_n) = Q_dom ⋈ ((X := Q_n + ΔQ_n) − (X := Q_n))    ΔN1 := Dom_[b](ΔG_N1) ⋈ (N1[G_N1 + ΔG_N1] − N1[G_N1])
--   Q_dom := Exists(Sum_[B2](Exists(ΔS(B2, C))))              Dom_[b](ΔG_N1): the groups that a statement of G_N1 changes
CREATE STREAM r (a INT NOT NULL, b INT NOT NULL) USING csv OPTIONS (path 'data/r.csv');
CREATE STREAM s (b INT NOT NULL, c INT NOT NULL) USING csv OPTIONS (path 'data/s.csv');

SELECT COUNT(*) FROM r WHERE r.a < (SELECT COUNT(*) FROM s WHERE r.b = s.b);

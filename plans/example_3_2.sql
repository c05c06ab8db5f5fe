-- Example 3.2 of `dbtoaster-batch-ivm`: distinct values, here below another aggregate.
--
--   the paper                                                 here
--   Q_n := Sum_[A](R(A, B) ⋈ (B > 3))                         M_R(a)
--   Exists(Q_n)                                               N1(a) := Exists(M_R(a))
--   Q_dom := Exists(Sum_[A](Exists(ΔR(A, B)) ⋈ (B > 3)))      Dom_[a](ΔM_R): (b > 3) is in ΔR(a) already
--   Q_dom ⋈ (Exists(Q_n + ΔQ_n) − Exists(Q_n))                Dom_[a](ΔM_R) ⋈ (N1[M_R + ΔM_R] − N1[M_R])
--
-- At the top, SELECT DISTINCT needs no Exists: each group of Q is printed once, and of the groups in ΔQ, the domain,
-- those that come to be or cease are what changes.
CREATE STREAM r (a INT NOT NULL, b INT NOT NULL) USING csv OPTIONS (path 'data/r.csv');

SELECT COUNT(*) FROM (SELECT DISTINCT a FROM r WHERE b > 3);

-- The dissertation's relations as the captions of its Fig. 2.1 and 3.2 have them, R[B, E], S[A, B, C, D], T[E, G] and
-- U[E, F], whose view tree is compressed: D and C are marginalised in one view. Its list of dep() is of figure_2_1.sql.
--   squall explain viewtree examples/fivm/figure_3_2.sql
CREATE STREAM r (b INT, e INT) USING csv OPTIONS (path 'r.csv');
CREATE STREAM s (a INT, b INT, c INT, d INT) USING csv OPTIONS (path 's.csv');
CREATE STREAM t (e INT, g INT) USING csv OPTIONS (path 't.csv');
CREATE STREAM u (e INT, f INT) USING csv OPTIONS (path 'u.csv');

CREATE VARIABLE ORDER figure AS $$
7 4
0 a int -1 {} 0
1 b int 0 {0} 0
2 c int 1 {0,1} 0
3 d int 2 {0,1,2} 0
4 e int 1 {1} 0
5 f int 4 {4} 0
6 g int 4 {4} 0
r 4 b,e
s 3 a,b,c,d
t 6 e,g
u 5 e,f
$$;

SELECT * FROM cofactor(TABLE(SELECT a, b, c, d, e, f, g FROM r NATURAL JOIN s NATURAL JOIN t NATURAL JOIN u),
                       order => 'figure');

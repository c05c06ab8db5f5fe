-- The dissertation's example of variable orders and view trees (F-IVM on Flink, Fig. 2.1), with its list of dep().
--   squall explain viewtree examples/fivm/figure_2_1.sql
CREATE STREAM r (b INT, e INT) USING csv OPTIONS (path 'r.csv');
CREATE STREAM s (a INT, b INT, c INT, d INT) USING csv OPTIONS (path 's.csv');
CREATE STREAM t (a INT, f INT, g INT) USING csv OPTIONS (path 't.csv');
CREATE STREAM u (f INT, h INT) USING csv OPTIONS (path 'u.csv');

CREATE VARIABLE ORDER figure AS $$
8 4
0 a int -1 {} 0
1 b int 0 {0} 0
2 c int 1 {0,1} 0
3 d int 2 {0,1,2} 0
4 e int 1 {1} 0
5 f int 0 {0} 0
6 g int 5 {0,5} 0
7 h int 5 {5} 0
r 4 b,e
s 3 a,b,c,d
t 6 a,f,g
u 7 f,h
$$;

SELECT * FROM cofactor(TABLE(SELECT a, b, c, d, e, f, g, h FROM r NATURAL JOIN s NATURAL JOIN t NATURAL JOIN u),
                       order => 'figure');

-- Where somebody is after sixteen moves who starts at place 7, as it becomes known how people move.
--   squall run examples/matrix/p16.sql --batch-rows 10 --mode changes
CREATE STREAM moves (src INT, dst INT, share DOUBLE) USING csv OPTIONS (path 'moves.csv', header 'true');

CREATE MATRIX A (n, n) FROM STREAM moves (src, dst, share);

CREATE MATRIX PROGRAM p16 AS $$
    B := A * A;
    C := B * B;
    D := C * C;
    E := D * D
$$;

SELECT j AS place, value AS share FROM p16.E WHERE i = 7;

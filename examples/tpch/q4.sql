-- TPC-H Q4. Orders with a line that came late, by priority.
-- Its data: python -m squallpy.testing.tpch 0.1 examples/tpch/data, which make demo has done.
-- yardstick: 1 job, 2 stages (Table 3 of the paper)
CREATE STREAM orders (
    o_orderkey BIGINT NOT NULL,
    o_custkey BIGINT NOT NULL,
    o_orderstatus VARCHAR NOT NULL,
    o_totalprice DECIMAL(15,2) NOT NULL,
    o_orderdate DATE NOT NULL,
    o_orderpriority VARCHAR NOT NULL,
    o_clerk VARCHAR NOT NULL,
    o_shippriority INT NOT NULL,
    o_comment VARCHAR NOT NULL,
    PRIMARY KEY (o_orderkey)
) USING parquet OPTIONS (path 'data/orders.parquet');

CREATE STREAM lineitem (
    l_orderkey BIGINT NOT NULL,
    l_partkey BIGINT NOT NULL,
    l_suppkey BIGINT NOT NULL,
    l_linenumber INT NOT NULL,
    l_quantity DECIMAL(15,2) NOT NULL,
    l_extendedprice DECIMAL(15,2) NOT NULL,
    l_discount DECIMAL(15,2) NOT NULL,
    l_tax DECIMAL(15,2) NOT NULL,
    l_returnflag VARCHAR NOT NULL,
    l_linestatus VARCHAR NOT NULL,
    l_shipdate DATE NOT NULL,
    l_commitdate DATE NOT NULL,
    l_receiptdate DATE NOT NULL,
    l_shipinstruct VARCHAR NOT NULL,
    l_shipmode VARCHAR NOT NULL,
    l_comment VARCHAR NOT NULL,
    PRIMARY KEY (l_orderkey, l_linenumber)
) USING parquet OPTIONS (path 'data/lineitem.parquet');

SELECT
    o_orderpriority,
    COUNT(*) AS order_count
FROM orders
WHERE
    o_orderdate >= DATE '1993-07-01'
    AND o_orderdate < DATE '1993-10-01'
    AND EXISTS(
        SELECT
            *
        FROM lineitem
        WHERE
            l_orderkey = o_orderkey AND l_commitdate < l_receiptdate
    )
GROUP BY
    o_orderpriority
ORDER BY
    o_orderpriority;

-- TPC-H Q7. Trade between two nations, by year.
-- Its data: python -m squallpy.testing.tpch 0.1 examples/tpch/data, which make demo has done.
-- yardstick: 3 jobs, 6 stages (Table 3 of the paper)
CREATE TABLE nation (
    n_nationkey INT NOT NULL,
    n_name VARCHAR NOT NULL,
    n_regionkey INT NOT NULL,
    n_comment VARCHAR NOT NULL,
    PRIMARY KEY (n_nationkey)
) USING parquet OPTIONS (path 'data/nation.parquet');

CREATE STREAM supplier (
    s_suppkey BIGINT NOT NULL,
    s_name VARCHAR NOT NULL,
    s_address VARCHAR NOT NULL,
    s_nationkey INT NOT NULL,
    s_phone VARCHAR NOT NULL,
    s_acctbal DECIMAL(15,2) NOT NULL,
    s_comment VARCHAR NOT NULL,
    PRIMARY KEY (s_suppkey)
) USING parquet OPTIONS (path 'data/supplier.parquet');

CREATE STREAM customer (
    c_custkey BIGINT NOT NULL,
    c_name VARCHAR NOT NULL,
    c_address VARCHAR NOT NULL,
    c_nationkey INT NOT NULL,
    c_phone VARCHAR NOT NULL,
    c_acctbal DECIMAL(15,2) NOT NULL,
    c_mktsegment VARCHAR NOT NULL,
    c_comment VARCHAR NOT NULL,
    PRIMARY KEY (c_custkey)
) USING parquet OPTIONS (path 'data/customer.parquet');

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
    supp_nation,
    cust_nation,
    l_year,
    SUM(volume) AS revenue
FROM (
    SELECT
        n1.n_name AS supp_nation,
        n2.n_name AS cust_nation,
        EXTRACT(YEAR FROM l_shipdate) AS l_year,
        l_extendedprice * (
            1 - l_discount
        ) AS volume
    FROM supplier, lineitem, orders, customer, nation AS n1, nation AS n2
    WHERE
        s_suppkey = l_suppkey
        AND o_orderkey = l_orderkey
        AND c_custkey = o_custkey
        AND s_nationkey = n1.n_nationkey
        AND c_nationkey = n2.n_nationkey
        AND (
            (
                n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY'
            )
            OR (
                n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'
            )
        )
        AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
) AS shipping
GROUP BY
    supp_nation,
    cust_nation,
    l_year
ORDER BY
    supp_nation,
    cust_nation,
    l_year;

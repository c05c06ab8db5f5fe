-- TPC-H Q2. The suppliers that ask least for a part, in a region.
-- Its data: python -m squallpy.testing.tpch 0.1 examples/tpch/data, which make demo has done.
-- yardstick: 1 job, 3 stages (Table 3 of the paper)
CREATE TABLE region (
    r_regionkey INT NOT NULL,
    r_name VARCHAR NOT NULL,
    r_comment VARCHAR NOT NULL,
    PRIMARY KEY (r_regionkey)
) USING parquet OPTIONS (path 'data/region.parquet');

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

CREATE STREAM part (
    p_partkey BIGINT NOT NULL,
    p_name VARCHAR NOT NULL,
    p_mfgr VARCHAR NOT NULL,
    p_brand VARCHAR NOT NULL,
    p_type VARCHAR NOT NULL,
    p_size INT NOT NULL,
    p_container VARCHAR NOT NULL,
    p_retailprice DECIMAL(15,2) NOT NULL,
    p_comment VARCHAR NOT NULL,
    PRIMARY KEY (p_partkey)
) USING parquet OPTIONS (path 'data/part.parquet');

CREATE STREAM partsupp (
    ps_partkey BIGINT NOT NULL,
    ps_suppkey BIGINT NOT NULL,
    ps_availqty INT NOT NULL,
    ps_supplycost DECIMAL(15,2) NOT NULL,
    ps_comment VARCHAR NOT NULL,
    PRIMARY KEY (ps_partkey, ps_suppkey)
) USING parquet OPTIONS (path 'data/partsupp.parquet');

SELECT
    s_acctbal,
    s_name,
    n_name,
    p_partkey,
    p_mfgr
FROM part, supplier, partsupp, nation, region
WHERE
    p_partkey = ps_partkey
    AND s_suppkey = ps_suppkey
    AND p_size = 15
    AND p_type LIKE '%BRASS'
    AND s_nationkey = n_nationkey
    AND n_regionkey = r_regionkey
    AND r_name = 'EUROPE'
    AND ps_supplycost = (
        SELECT
            MIN(ps_supplycost)
        FROM partsupp, supplier, nation, region
        WHERE
            p_partkey = ps_partkey
            AND s_suppkey = ps_suppkey
            AND s_nationkey = n_nationkey
            AND n_regionkey = r_regionkey
            AND r_name = 'EUROPE'
    )
ORDER BY
    s_acctbal DESC,
    n_name,
    s_name,
    p_partkey
LIMIT 100;

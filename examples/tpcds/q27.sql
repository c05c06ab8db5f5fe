-- TPC-DS Q27. Averages of what one group of people bought, by item and state, by item, and of all.
-- Its data: python -m squallpy.testing.tpcds 0.1 examples/tpcds/data
CREATE STREAM store_sales (
    ss_sold_date_sk INT,
    ss_item_sk INT NOT NULL,
    ss_customer_sk INT,
    ss_cdemo_sk INT,
    ss_hdemo_sk INT,
    ss_addr_sk INT,
    ss_store_sk INT,
    ss_promo_sk INT,
    ss_ticket_number BIGINT NOT NULL,
    ss_quantity INT,
    ss_list_price DECIMAL(7,2),
    ss_sales_price DECIMAL(7,2),
    ss_ext_sales_price DECIMAL(7,2),
    ss_ext_list_price DECIMAL(7,2),
    ss_ext_tax DECIMAL(7,2),
    ss_coupon_amt DECIMAL(7,2),
    ss_net_profit DECIMAL(7,2),
    PRIMARY KEY (ss_item_sk, ss_ticket_number)
) USING parquet OPTIONS (path 'data/store_sales.parquet');

CREATE STREAM customer_demographics (
    cd_demo_sk INT NOT NULL,
    cd_gender VARCHAR,
    cd_marital_status VARCHAR,
    cd_education_status VARCHAR,
    PRIMARY KEY (cd_demo_sk)
) USING parquet OPTIONS (path 'data/customer_demographics.parquet');

CREATE STREAM date_dim (
    d_date_sk INT NOT NULL,
    d_year INT,
    d_dow INT,
    d_moy INT,
    d_dom INT,
    d_day_name VARCHAR,
    PRIMARY KEY (d_date_sk)
) USING parquet OPTIONS (path 'data/date_dim.parquet');

CREATE STREAM item (
    i_item_sk INT NOT NULL,
    i_item_id VARCHAR NOT NULL,
    i_brand_id INT,
    i_brand VARCHAR,
    i_category_id INT,
    i_category VARCHAR,
    i_manufact_id INT,
    i_manufact VARCHAR,
    i_manager_id INT,
    PRIMARY KEY (i_item_sk)
) USING parquet OPTIONS (path 'data/item.parquet');

CREATE STREAM store (
    s_store_sk INT NOT NULL,
    s_store_id VARCHAR NOT NULL,
    s_store_name VARCHAR,
    s_number_employees INT,
    s_city VARCHAR,
    s_county VARCHAR,
    s_state VARCHAR,
    s_zip VARCHAR,
    s_gmt_offset DECIMAL(5,2),
    PRIMARY KEY (s_store_sk)
) USING parquet OPTIONS (path 'data/store.parquet');

SELECT
    i_item_id,
    s_state,
    GROUPING(s_state) AS g_state,
    AVG(ss_quantity) AS agg1,
    AVG(ss_list_price) AS agg2,
    AVG(ss_coupon_amt) AS agg3,
    AVG(ss_sales_price) AS agg4
FROM store_sales, customer_demographics, date_dim, store, item
WHERE ss_sold_date_sk = d_date_sk
    AND ss_item_sk = i_item_sk
    AND ss_store_sk = s_store_sk
    AND ss_cdemo_sk = cd_demo_sk
    AND cd_gender = 'M'
    AND cd_marital_status = 'S'
    AND cd_education_status = 'College'
    AND d_year = 2002
    AND s_state IN ('TN')
GROUP BY ROLLUP (i_item_id, s_state)
ORDER BY i_item_id, s_state, g_state
LIMIT 100;

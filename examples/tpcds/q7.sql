-- TPC-DS Q7. Averages of what one group of people bought on promotion, by item.
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

CREATE STREAM promotion (
    p_promo_sk INT NOT NULL,
    p_channel_email VARCHAR,
    p_channel_event VARCHAR,
    PRIMARY KEY (p_promo_sk)
) USING parquet OPTIONS (path 'data/promotion.parquet');

SELECT
    i_item_id,
    AVG(ss_quantity) AS agg1,
    AVG(ss_list_price) AS agg2,
    AVG(ss_coupon_amt) AS agg3,
    AVG(ss_sales_price) AS agg4
FROM store_sales, customer_demographics, date_dim, item, promotion
WHERE ss_sold_date_sk = d_date_sk
    AND ss_item_sk = i_item_sk
    AND ss_cdemo_sk = cd_demo_sk
    AND ss_promo_sk = p_promo_sk
    AND cd_gender = 'M'
    AND cd_marital_status = 'S'
    AND cd_education_status = 'College'
    AND (p_channel_email = 'N' OR p_channel_event = 'N')
    AND d_year = 2000
GROUP BY i_item_id
ORDER BY i_item_id
LIMIT 100;

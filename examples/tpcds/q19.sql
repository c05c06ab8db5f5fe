-- TPC-DS Q19. What customers from elsewhere bought of one manager's brands in a month.
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

CREATE STREAM customer (
    c_customer_sk INT NOT NULL,
    c_current_addr_sk INT,
    c_salutation VARCHAR,
    c_first_name VARCHAR,
    c_last_name VARCHAR,
    c_preferred_cust_flag VARCHAR,
    PRIMARY KEY (c_customer_sk)
) USING parquet OPTIONS (path 'data/customer.parquet');

CREATE STREAM customer_address (
    ca_address_sk INT NOT NULL,
    ca_city VARCHAR,
    ca_zip VARCHAR,
    PRIMARY KEY (ca_address_sk)
) USING parquet OPTIONS (path 'data/customer_address.parquet');

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
    i_brand_id AS brand_id,
    i_brand AS brand,
    i_manufact_id,
    i_manufact,
    SUM(ss_ext_sales_price) AS ext_price
FROM date_dim, store_sales, item, customer, customer_address, store
WHERE d_date_sk = ss_sold_date_sk
    AND ss_item_sk = i_item_sk
    AND i_manager_id = 8
    AND d_moy = 11
    AND d_year = 1998
    AND ss_customer_sk = c_customer_sk
    AND c_current_addr_sk = ca_address_sk
    AND SUBSTRING(ca_zip, 1, 5) <> SUBSTRING(s_zip, 1, 5)
    AND ss_store_sk = s_store_sk
GROUP BY i_brand, i_brand_id, i_manufact_id, i_manufact
ORDER BY ext_price DESC, brand, brand_id, i_manufact_id, i_manufact
LIMIT 100;

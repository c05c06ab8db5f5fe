-- TPC-DS Q73. Customers who bought a few things at once at the start of a month.
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

CREATE STREAM household_demographics (
    hd_demo_sk INT NOT NULL,
    hd_buy_potential VARCHAR,
    hd_dep_count INT,
    hd_vehicle_count INT,
    PRIMARY KEY (hd_demo_sk)
) USING parquet OPTIONS (path 'data/household_demographics.parquet');

CREATE STREAM date_dim (
    d_date_sk INT NOT NULL,
    d_year INT,
    d_dow INT,
    d_moy INT,
    d_dom INT,
    d_day_name VARCHAR,
    PRIMARY KEY (d_date_sk)
) USING parquet OPTIONS (path 'data/date_dim.parquet');

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
    c_last_name,
    c_first_name,
    c_salutation,
    c_preferred_cust_flag,
    ss_ticket_number,
    cnt
FROM (
    SELECT ss_ticket_number, ss_customer_sk, COUNT(*) AS cnt
    FROM store_sales, date_dim, store, household_demographics
    WHERE ss_sold_date_sk = d_date_sk
        AND ss_store_sk = s_store_sk
        AND ss_hdemo_sk = hd_demo_sk
        AND d_dom BETWEEN 1 AND 2
        AND (hd_buy_potential = '>10000' OR hd_buy_potential = 'Unknown')
        AND hd_vehicle_count > 0
        AND CASE WHEN hd_vehicle_count > 0 THEN hd_dep_count / hd_vehicle_count ELSE NULL END > 1
        AND d_year IN (1999, 2000, 2001)
        AND s_county IN ('Williamson County')
    GROUP BY ss_ticket_number, ss_customer_sk
) AS dj, customer
WHERE ss_customer_sk = c_customer_sk
    AND cnt BETWEEN 1 AND 5
ORDER BY cnt DESC, c_last_name, ss_ticket_number;

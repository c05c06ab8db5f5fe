-- TPC-DS Q46. What customers bought at weekends with an address in another city.
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
    current_addr.ca_city,
    bought_city,
    ss_ticket_number,
    amt,
    profit
FROM (
    SELECT
        ss_ticket_number,
        ss_customer_sk,
        ca_city AS bought_city,
        SUM(ss_coupon_amt) AS amt,
        SUM(ss_net_profit) AS profit
    FROM store_sales, date_dim, store, household_demographics, customer_address
    WHERE ss_sold_date_sk = d_date_sk
        AND ss_store_sk = s_store_sk
        AND ss_hdemo_sk = hd_demo_sk
        AND ss_addr_sk = ca_address_sk
        AND (hd_dep_count = 4 OR hd_vehicle_count = 3)
        AND d_dow IN (6, 0)
        AND d_year IN (1999, 2000, 2001)
        AND s_city IN ('Fairview', 'Midway')
    GROUP BY ss_ticket_number, ss_customer_sk, ss_addr_sk, ca_city
) AS dn, customer, customer_address AS current_addr
WHERE ss_customer_sk = c_customer_sk
    AND c_current_addr_sk = current_addr.ca_address_sk
    AND current_addr.ca_city <> bought_city
ORDER BY c_last_name, c_first_name, ca_city, bought_city, ss_ticket_number
LIMIT 100;

-- TPC-DS Q43. What each store sold in a year, by day of the week.
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
    s_store_name,
    s_store_id,
    SUM(CASE WHEN d_day_name = 'Sunday' THEN ss_sales_price ELSE NULL END) AS sun_sales,
    SUM(CASE WHEN d_day_name = 'Monday' THEN ss_sales_price ELSE NULL END) AS mon_sales,
    SUM(CASE WHEN d_day_name = 'Tuesday' THEN ss_sales_price ELSE NULL END) AS tue_sales,
    SUM(CASE WHEN d_day_name = 'Wednesday' THEN ss_sales_price ELSE NULL END) AS wed_sales,
    SUM(CASE WHEN d_day_name = 'Thursday' THEN ss_sales_price ELSE NULL END) AS thu_sales,
    SUM(CASE WHEN d_day_name = 'Friday' THEN ss_sales_price ELSE NULL END) AS fri_sales,
    SUM(CASE WHEN d_day_name = 'Saturday' THEN ss_sales_price ELSE NULL END) AS sat_sales
FROM date_dim, store_sales, store
WHERE d_date_sk = ss_sold_date_sk
    AND s_store_sk = ss_store_sk
    AND s_gmt_offset = -5
    AND d_year = 2000
GROUP BY s_store_name, s_store_id
ORDER BY s_store_name, s_store_id, sun_sales, mon_sales, tue_sales, wed_sales, thu_sales, fri_sales, sat_sales
LIMIT 100;

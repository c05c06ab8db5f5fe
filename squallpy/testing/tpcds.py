"""TPC-DS: data by its generator, and the schemas as streams, of the columns that the examples read.

python -m squallpy.testing.tpcds 0.1 examples/tpcds/data      parquet files of the tables at scale 0.1
"""

from squallpy.testing.tpc import Benchmark

# NB: the generator leaves out a value here and there: only what is part of a key is NOT NULL, as in the standard
COLUMNS: dict[str, str] = {
    "store_sales": "ss_sold_date_sk INT, ss_item_sk INT NOT NULL, ss_customer_sk INT, ss_cdemo_sk INT, "
    "ss_hdemo_sk INT, ss_addr_sk INT, ss_store_sk INT, ss_promo_sk INT, ss_ticket_number BIGINT NOT NULL, "
    "ss_quantity INT, ss_list_price DECIMAL(7,2), ss_sales_price DECIMAL(7,2), ss_ext_sales_price DECIMAL(7,2), "
    "ss_ext_list_price DECIMAL(7,2), ss_ext_tax DECIMAL(7,2), ss_coupon_amt DECIMAL(7,2), ss_net_profit DECIMAL(7,2)",
    "customer": "c_customer_sk INT NOT NULL, c_current_addr_sk INT, c_salutation VARCHAR, c_first_name VARCHAR, "
    "c_last_name VARCHAR, c_preferred_cust_flag VARCHAR",
    "customer_address": "ca_address_sk INT NOT NULL, ca_city VARCHAR, ca_zip VARCHAR",
    "customer_demographics": "cd_demo_sk INT NOT NULL, cd_gender VARCHAR, cd_marital_status VARCHAR, "
    "cd_education_status VARCHAR",
    "household_demographics": "hd_demo_sk INT NOT NULL, hd_buy_potential VARCHAR, hd_dep_count INT, "
    "hd_vehicle_count INT",
    "date_dim": "d_date_sk INT NOT NULL, d_year INT, d_dow INT, d_moy INT, d_dom INT, d_day_name VARCHAR",
    "item": "i_item_sk INT NOT NULL, i_item_id VARCHAR NOT NULL, i_brand_id INT, i_brand VARCHAR, "
    "i_category_id INT, i_category VARCHAR, i_manufact_id INT, i_manufact VARCHAR, i_manager_id INT",
    "promotion": "p_promo_sk INT NOT NULL, p_channel_email VARCHAR, p_channel_event VARCHAR",
    "store": "s_store_sk INT NOT NULL, s_store_id VARCHAR NOT NULL, s_store_name VARCHAR, s_number_employees INT, "
    "s_city VARCHAR, s_county VARCHAR, s_state VARCHAR, s_zip VARCHAR, s_gmt_offset DECIMAL(5,2)",
}
KEYS = {"store_sales": ("ss_item_sk", "ss_ticket_number")}
TPCDS = Benchmark("tpcds", COLUMNS, KEYS, (), "tpcgen-cli", ("tpcds",), ("-T", ",".join(COLUMNS)))

if __name__ == "__main__":
    TPCDS.main(__doc__)

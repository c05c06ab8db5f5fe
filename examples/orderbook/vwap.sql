-- Volume-weighted price of the best bids: those with less than a quarter of all volume at better prices.
-- Its data, with orders that come and go: python -m bench.data.orderbook 10000 examples/orderbook/data
CREATE STREAM bids (
    time BIGINT NOT NULL,
    id BIGINT NOT NULL,
    broker INT NOT NULL,
    volume BIGINT NOT NULL,
    price DECIMAL(12,2) NOT NULL,
    PRIMARY KEY (id)
) USING parquet OPTIONS (path 'data/bids.parquet', op '__op');

SELECT SUM(b1.price * b1.volume) AS vwap
FROM bids AS b1
WHERE 0.25 * (SELECT SUM(b3.volume) FROM bids AS b3)
    > (SELECT COALESCE(SUM(b2.volume), 0) FROM bids AS b2 WHERE b2.price > b1.price);

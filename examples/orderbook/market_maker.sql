-- What brokers' later bids are worth beyond their earlier ones: their profit as market makers.
-- Its data, with orders that come and go: python -m bench.data.orderbook 10000 examples/orderbook/data
CREATE STREAM bids (
    time BIGINT NOT NULL,
    id BIGINT NOT NULL,
    broker INT NOT NULL,
    volume BIGINT NOT NULL,
    price DECIMAL(12,2) NOT NULL,
    PRIMARY KEY (id)
) USING parquet OPTIONS (path 'data/bids.parquet', op '__op');

SELECT x.broker, SUM(x.volume * x.price - y.volume * y.price) AS profit
FROM bids AS x, bids AS y
WHERE x.broker = y.broker
    AND x.time > y.time
GROUP BY x.broker;

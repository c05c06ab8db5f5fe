-- Brokers with axes to grind: their bids and asks whose prices differ by over 1,000.
-- Its data, with orders that come and go: python -m bench.data.orderbook 10000 examples/orderbook/data
CREATE STREAM bids (
    time BIGINT NOT NULL,
    id BIGINT NOT NULL,
    broker INT NOT NULL,
    volume BIGINT NOT NULL,
    price DECIMAL(12,2) NOT NULL,
    PRIMARY KEY (id)
) USING parquet OPTIONS (path 'data/bids.parquet', op '__op');

CREATE STREAM asks (
    time BIGINT NOT NULL,
    id BIGINT NOT NULL,
    broker INT NOT NULL,
    volume BIGINT NOT NULL,
    price DECIMAL(12,2) NOT NULL,
    PRIMARY KEY (id)
) USING parquet OPTIONS (path 'data/asks.parquet', op '__op');

SELECT b.broker, SUM(a.volume - b.volume) AS axe
FROM bids AS b, asks AS a
WHERE b.broker = a.broker
    AND (a.price - b.price > 1000 OR b.price - a.price > 1000)
GROUP BY b.broker;

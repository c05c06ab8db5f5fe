-- Trades that brokers missed: between the highest quarters, by volume, of both sides of the book.
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

SELECT b.broker, SUM(a.price * a.volume - b.price * b.volume) AS missed
FROM bids AS b, asks AS a
WHERE 0.25 * (SELECT SUM(a1.volume) FROM asks AS a1)
        > (SELECT COALESCE(SUM(a2.volume), 0) FROM asks AS a2 WHERE a2.price > a.price)
    AND 0.25 * (SELECT SUM(b1.volume) FROM bids AS b1)
        > (SELECT COALESCE(SUM(b2.volume), 0) FROM bids AS b2 WHERE b2.price > b.price)
GROUP BY b.broker;

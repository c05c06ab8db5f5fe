-- The spread between orders that weigh: those with over a ten-thousandth of the volume of their side.
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

SELECT SUM(a.price - b.price) AS spread
FROM bids AS b, asks AS a
WHERE b.volume > 0.0001 * (SELECT SUM(b1.volume) FROM bids AS b1)
    AND a.volume > 0.0001 * (SELECT SUM(a1.volume) FROM asks AS a1);

-- Nexmark Q1. Currency conversion: bids in euros.
-- Its data: python -m bench.data.nexmark 100000 examples/nexmark/data
CREATE STREAM bid (
    auction  BIGINT    NOT NULL,
    bidder   BIGINT    NOT NULL,
    price    BIGINT    NOT NULL,
    channel  VARCHAR   NOT NULL,
    url      VARCHAR   NOT NULL,
    dateTime TIMESTAMP NOT NULL,
    extra    VARCHAR   NOT NULL
) USING parquet OPTIONS (path 'data/bid.parquet');

SELECT auction, bidder, 0.908 * price AS price, dateTime, extra FROM bid;

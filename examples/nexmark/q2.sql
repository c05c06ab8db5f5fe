-- Nexmark Q2. Selection: bids on some auctions.
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

SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0;

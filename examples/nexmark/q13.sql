-- Nexmark Q13. Bounded side input: bids with a value by their auction, of a table that does not change.
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

CREATE TABLE side_input (key BIGINT NOT NULL, value VARCHAR NOT NULL) USING parquet OPTIONS (path 'data/side_input.parquet');

SELECT b.auction, b.bidder, b.price, b.dateTime, s.value
FROM bid AS b JOIN side_input AS s ON MOD(b.auction, 100) = s.key;

-- Nexmark Q22. The folders of a bid's address.
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

SELECT auction, bidder, price, channel,
    SPLIT_PART(url, '/', 4) AS dir1, SPLIT_PART(url, '/', 5) AS dir2, SPLIT_PART(url, '/', 6) AS dir3
FROM bid;

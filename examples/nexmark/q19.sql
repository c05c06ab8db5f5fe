-- Nexmark Q19. The ten highest bids on each auction.
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

SELECT *
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, dateTime) AS place FROM bid)
WHERE place <= 10;

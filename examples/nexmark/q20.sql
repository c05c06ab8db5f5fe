-- Nexmark Q20. Bids with their auctions, of one category.
-- Its data: python -m bench.data.nexmark 100000 examples/nexmark/data
CREATE STREAM auction (
    id          BIGINT    NOT NULL,
    itemName    VARCHAR   NOT NULL,
    description VARCHAR   NOT NULL,
    initialBid  BIGINT    NOT NULL,
    reserve     BIGINT    NOT NULL,
    dateTime    TIMESTAMP NOT NULL,
    expires     TIMESTAMP NOT NULL,
    seller      BIGINT    NOT NULL,
    category    BIGINT    NOT NULL,
    extra       VARCHAR   NOT NULL,
    PRIMARY KEY (id)
) USING parquet OPTIONS (path 'data/auction.parquet');

CREATE STREAM bid (
    auction  BIGINT    NOT NULL,
    bidder   BIGINT    NOT NULL,
    price    BIGINT    NOT NULL,
    channel  VARCHAR   NOT NULL,
    url      VARCHAR   NOT NULL,
    dateTime TIMESTAMP NOT NULL,
    extra    VARCHAR   NOT NULL
) USING parquet OPTIONS (path 'data/bid.parquet');

SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.dateTime, b.extra,
    a.itemName, a.description, a.initialBid, a.reserve, a.dateTime AS opened, a.expires, a.seller, a.category
FROM bid AS b JOIN auction AS a ON b.auction = a.id
WHERE a.category = 10;

-- Nexmark Q9. Winning bids: the highest one of each auction, of several the first.
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

SELECT id, itemName, description, initialBid, reserve, opened, expires, seller, category, bidder, price, dateTime
FROM (
    SELECT a.id, a.itemName, a.description, a.initialBid, a.reserve, a.dateTime AS opened, a.expires, a.seller, a.category,
        b.bidder, b.price, b.dateTime,
        ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.dateTime) AS place
    FROM auction AS a, bid AS b
    WHERE a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires
)
WHERE place <= 1;

-- Nexmark Q6. Average selling price by seller: of the last ten auctions, a window over rows that change.
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

SELECT q.seller,
    AVG(q.final) OVER (PARTITION BY q.seller ORDER BY q.dateTime, q.id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS average
FROM (
    SELECT MAX(b.price) AS final, a.seller, a.id, MAX(b.dateTime) AS dateTime
    FROM auction AS a, bid AS b
    WHERE a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires
    GROUP BY a.id, a.seller
) AS q;

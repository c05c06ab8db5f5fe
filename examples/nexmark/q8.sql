-- Nexmark Q8. New users: who came and opened an auction within the same ten seconds.
-- Its data: python -m bench.data.nexmark 100000 examples/nexmark/data
CREATE STREAM person (
    id           BIGINT    NOT NULL,
    name         VARCHAR   NOT NULL,
    emailAddress VARCHAR   NOT NULL,
    creditCard   VARCHAR   NOT NULL,
    city         VARCHAR   NOT NULL,
    state        VARCHAR   NOT NULL,
    dateTime     TIMESTAMP NOT NULL,
    extra        VARCHAR   NOT NULL,
    PRIMARY KEY (id)
) USING parquet OPTIONS (path 'data/person.parquet');

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

SELECT p.id, p.name, p.window_start
FROM (
    SELECT id, name, window_start, window_end
    FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(dateTime), INTERVAL '10' SECOND))
    GROUP BY id, name, window_start, window_end
) AS p
JOIN (
    SELECT seller, window_start, window_end
    FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(dateTime), INTERVAL '10' SECOND))
    GROUP BY seller, window_start, window_end
) AS a ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end;

-- Nexmark Q3. Local item suggestion: who sells in some states what is of a category.
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

SELECT p.name, p.city, p.state, a.id
FROM auction AS a JOIN person AS p ON a.seller = p.id
WHERE a.category = 10 AND (p.state = 'OR' OR p.state = 'ID' OR p.state = 'CA');

-- Which ads are clicked within a minute of being seen, lately: two streams, each in its own order of time.
--   squall run examples/windows/clicks.sql --mode live --batch-rows 10 --late late.csv
CREATE STREAM views (
    user_id INT NOT NULL,
    ad VARCHAR NOT NULL,
    at TIMESTAMP NOT NULL
) USING csv OPTIONS (path 'views.csv', header 'true') TIMESTAMP BY at;

CREATE STREAM clicks (
    user_id INT NOT NULL,
    ad VARCHAR NOT NULL,
    at TIMESTAMP NOT NULL
) USING csv OPTIONS (path 'clicks.csv', header 'true') TIMESTAMP BY at DELAY 30 SEC;

SELECT v.ad, COUNT(*) AS clicks, COUNT(DISTINCT v.user_id) AS users
FROM views AS v, clicks AS c
WHERE c.user_id = v.user_id
    AND c.ad = v.ad
    AND c.at BETWEEN v.at AND v.at + INTERVAL '1' MINUTE
GROUP BY v.ad
RANGE 5 MIN SLIDE 1 MIN
ORDER BY clicks DESC, ad;

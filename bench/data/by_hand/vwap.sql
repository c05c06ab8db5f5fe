-- examples/orderbook/vwap.sql with the volume at better prices as a running sum over the distinct prices
WITH levels AS (
    SELECT price, SUM(volume) AS volume, SUM(price * volume) AS value
    FROM bids
    GROUP BY price
),
better AS (
    SELECT value, SUM(volume) OVER (ORDER BY price DESC) - volume AS volume, SUM(volume) OVER () AS total
    FROM levels
)
SELECT SUM(value) AS vwap
FROM better
WHERE 0.25 * total > volume;

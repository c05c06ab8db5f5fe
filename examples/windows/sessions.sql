-- Visits of a shop: the clicks of a user without a pause of more than five minutes. Late clicks make one visit of two,
-- and a click that is taken back, of a machine perhaps, parts one into two.
--   squall run examples/windows/sessions.sql --backend local --mode changes --batch-rows 4
CREATE STREAM clicks (user_id INT NOT NULL, page VARCHAR NOT NULL, spent DECIMAL(8,2), at TIMESTAMP NOT NULL)
    USING csv OPTIONS (path 'visits.csv', op 'op');

SELECT user_id, session_window.start AS began, session_window.end AS ended,
    COUNT(*) AS clicks, COUNT(DISTINCT page) AS pages, SUM(spent) AS spent
FROM clicks
GROUP BY user_id, SESSION_WINDOW(at, '5 minutes')
ORDER BY began, user_id;

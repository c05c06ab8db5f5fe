"""The result of a query on the driver: the changes of its printed rows, ORDER BY … LIMIT included."""

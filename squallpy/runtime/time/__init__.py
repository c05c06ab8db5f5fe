"""Event time: the watermark of streams, the expiry of rows from windows, and deletes of rows that are not there."""

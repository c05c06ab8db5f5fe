"""Event time: windows that move with the clock, and the ledger of rows that a change stream holds."""

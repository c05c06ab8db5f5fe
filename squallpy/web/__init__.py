"""The page of a run or a session: its plan, triggers, load and views in a browser, over HTTP from this process."""

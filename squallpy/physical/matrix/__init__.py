"""Matrix programs on several partitions: blocks of views, and passes over them."""

"""One micro-batch of one partition: from source rows to messages, through the stages, to the published result."""

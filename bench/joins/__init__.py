"""Join operators beside each other, simulated, on Spark and in one process."""

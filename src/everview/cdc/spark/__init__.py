"""The protocol, data-parallel on Spark: executors read, deduplicate and write, the driver says what is complete."""

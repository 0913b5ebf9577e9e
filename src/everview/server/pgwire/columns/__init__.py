"""Results as wire messages, built column by column: values as bytes, then rows of them in one buffer."""

"""Change data capture: changes written down and read back, whatever happens to the messages in between."""

"""Where immutable bytes live."""

"""Where the metadata live, and the one place where order is decided."""

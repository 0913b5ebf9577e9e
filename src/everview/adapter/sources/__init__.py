"""Sources: the kinds that there are, and those that read what this system writes itself."""

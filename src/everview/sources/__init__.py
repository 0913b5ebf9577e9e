"""Sources: collections that are filled from outside of SQL."""

"""Rows and collections of rows, as Python values and as Arrow tables."""

"""Everview keeps SQL views over changing data exact and fresh, on Spark."""

__version__ = "0.1.0"

"""Statements: text to values, one class for each kind of statement."""

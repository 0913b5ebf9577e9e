"""Statements carried out, one file for each group of kinds."""

"""Tests of change data capture."""

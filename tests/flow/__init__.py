"""Tests of materializations."""

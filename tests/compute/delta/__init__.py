"""Tests of the delta rules."""

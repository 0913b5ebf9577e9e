"""Everview's tests, in the order of its layers."""

"""Tests of the compute layer."""

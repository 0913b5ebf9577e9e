"""Tests of times, frontiers, hashes and consolidation."""

"""Tests of what the server may reach."""

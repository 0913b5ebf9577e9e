"""Nexmark: an auction site whose queries are maintained views."""

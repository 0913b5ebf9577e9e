"""Formatting."""

from __future__ import annotations

from everview.compute.functions.family import Family

FUNCTIONS = Family()

"""Drivers: one file for each kind of endpoint, all of the shape that `contract` describes."""

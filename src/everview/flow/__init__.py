"""Materializations: collections delivered exactly once into other systems, by transactions of runtime and driver."""

"""Sinks: collections delivered into other systems, or written down as change streams."""

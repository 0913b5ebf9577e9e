"""Connectors that others wrote: how a materialization looks to them, and how they are spoken with."""

"""The plan language: typed relations and scalars, with positions instead of names."""

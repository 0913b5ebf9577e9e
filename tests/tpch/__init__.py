"""TPC-H: its tables, its queries with their validation parameters, and data in miniature."""

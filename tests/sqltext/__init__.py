"""SQL as text, over the wire: its answers are those of PostgreSQL, in every way that there is to compute them."""

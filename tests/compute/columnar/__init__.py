"""Plans by columns, held against the interpreter."""

"""Functions, operators, casts and aggregates: what each takes, gives, computes and renders to, in one registry."""

"""The optimizer: plans to plans that mean the same and cost less. One rewrite is one file is one function."""

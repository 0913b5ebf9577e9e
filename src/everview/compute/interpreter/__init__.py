"""The interpreter: evaluates a plan in plain Python over small collections. It defines what a plan means."""

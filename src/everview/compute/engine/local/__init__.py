"""The local engine: the meaning of a plan, interpreted in plain Python over small collections."""

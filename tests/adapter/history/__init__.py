"""A checker of histories: what concurrent clients wrote and saw, crashes included, and whether it is in order."""

"""Load generators: sources whose contents are a function of a seed and of time, and so the same whenever computed."""

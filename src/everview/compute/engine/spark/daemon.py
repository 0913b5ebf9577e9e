"""Spark's Python daemon with Everview in it: workers are forks of it, and need not import what they run.

Spark starts it as a program, and lets workers go that had nothing to do for a minute; the daemon stays.
"""

from pyspark.daemon import manager

import everview.compute.engine.spark.runs  # noqa: F401 - for the workers

if __name__ == "__main__":
    manager()

"""Times, frontiers and consolidation of updates. No I/O."""

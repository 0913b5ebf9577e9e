"""Durable time-varying collections: shards, capabilities, compaction, on Blob and Consensus."""

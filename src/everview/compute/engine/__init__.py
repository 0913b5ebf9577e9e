"""The engines that run a fragment of a plan over batches."""

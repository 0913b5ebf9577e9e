"""HTTP for those who watch: health, readiness and metrics."""

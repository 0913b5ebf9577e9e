"""The catalog: what exists, under which names, and who depends on whom; durable in one total order."""

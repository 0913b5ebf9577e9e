"""Plans, delta rules, arrangements and ticks, on engines that run them."""

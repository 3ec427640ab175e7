"""The judge: it runs an entry in sandboxes, has data, network and clock, and signs the result."""

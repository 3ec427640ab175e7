"""What a check on a hub's machine asks of the hub, and tells it."""

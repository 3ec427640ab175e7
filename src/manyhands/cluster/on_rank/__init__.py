"""What runs on the ranks themselves."""

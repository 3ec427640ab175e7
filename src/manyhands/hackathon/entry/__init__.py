"""An entry: its file, its size, and what it gets on its ranks."""

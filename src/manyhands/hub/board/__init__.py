"""The class board: who is where, who is stuck."""

"""What happens when a cell does not end well.

That is the watch over it, what was wrong, what the learner reads, and how lost ranks are restarted.
"""

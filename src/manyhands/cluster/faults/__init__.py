"""When a cell does not end well: the watch over it, what was wrong, what the learner reads, and the
healing.
"""

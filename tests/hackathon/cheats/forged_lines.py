"""An error whose text looks like a report.

verdict: entry.py, line 8: ValueError: bad
"""


def train(model, batches, comm):
    raise ValueError("bad\x1b[2J\rrun 1 of 5: 0.001 s")

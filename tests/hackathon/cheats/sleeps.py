"""Sleep.

verdict: No rank has asked for anything in 5 s
"""

import time


def train(model, batches, comm):
    time.sleep(10**6)

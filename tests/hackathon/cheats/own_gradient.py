"""Ask for the gradient of a batch that was not handed out.

verdict: A gradient was requested for a batch that was not handed out
"""

from manyhands.hackathon.entry.rank_side import Batch


def train(model, batches, comm):
    model(Batch(3))

"""The optimiser steps before the gradient has come: each step takes that of the batch before.

fails: training/decoder, training/encoder
shows: Each step used the gradient of the batch before
points: 10
"""
# %% grade_id="training"
# %%px --setup
def train_split(module, c, batches, lr):
    optimiser, losses = torch.optim.Adam(module.parameters(), lr), []
    for sources, targets in batches:
        optimiser.step()
        optimiser.zero_grad()
        if c.rank == 0:
            encoder_step(module, sources, c, 1)
        else:
            losses.append(decoder_step(module, targets, c, 0))
    return losses

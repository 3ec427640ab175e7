"""Only the decoder's optimiser steps.

fails: training/decoder, training/encoder
shows: The encoder's weights have not changed
points: 10
"""
# %% grade_id="training"
# %%px --setup
def train_split(module, c, batches, lr):
    optimiser, losses = torch.optim.Adam(module.parameters(), lr), []
    for sources, targets in batches:
        optimiser.zero_grad()
        if c.rank == 0:
            encoder_step(module, sources, c, 1)
        else:
            losses.append(decoder_step(module, targets, c, 0))
            optimiser.step()
    return losses

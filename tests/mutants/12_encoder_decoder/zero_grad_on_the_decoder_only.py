"""Only the decoder forgets its old gradients.

fails: training/decoder, training/encoder
shows: zero_grad() once in every step, on both ranks
points: 10
"""
# %% grade_id="training"
# %%px --setup
def train_split(module, c, batches, lr):
    optimiser, losses = torch.optim.Adam(module.parameters(), lr), []
    for sources, targets in batches:
        if c.rank == 0:
            encoder_step(module, sources, c, 1)
        else:
            losses.append(decoder_step(module, targets, c, 0))
        optimiser.step()
        if c.rank == 1:
            optimiser.zero_grad()
    return losses

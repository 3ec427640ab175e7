"""The encoder's outputs travel as well.

fails: split/messages
shows: The decoder needs neither the outputs
points: 11
runs: split
"""
# %% grade_id="split"
# %%px --setup
def encoder_step(encoder, sources, c, decoder_rank):
    outputs, (h, cell) = encoder(sources)
    functions.send((h, cell, *outputs), c, decoder_rank).backward()


def decoder_step(decoder, targets, c, encoder_rank, divisor=None):
    h, cell, *outputs = functions.recv(c, encoder_rank)
    loss = decoder((h, cell), targets, divisor)
    loss.backward()
    return loss.item()

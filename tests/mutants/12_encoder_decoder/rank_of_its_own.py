"""The ranks 0 and 1 are written down, in place of those that are given.

fails: split/loss, split/decoder, split/encoder, split/messages
shows: is this rank itself
points: 8
runs: split
"""
# %% grade_id="split"
# %%px --setup
def encoder_step(encoder, sources, c, decoder_rank):
    _, (h, cell) = encoder(sources)
    phi_h = functions.send(h, c, 1, tag=0)
    phi_cell = functions.send(cell, c, 1, tag=1)
    functions.pseudo_connect(phi_h, phi_cell).backward()


def decoder_step(decoder, targets, c, encoder_rank, divisor=None):
    h = functions.recv(c, 0, tag=0)
    cell = functions.recv(c, 0, tag=1)
    loss = decoder((h, cell), targets, divisor)
    loss.backward()
    return loss.item()

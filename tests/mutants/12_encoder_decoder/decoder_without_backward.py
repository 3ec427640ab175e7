"""The decoder returns its loss, a tensor, and never calls backward: the encoder's delegates bring no gradient.

fails: split/loss, split/decoder, split/encoder, split/messages
shows: Does its step call backward()
points: 8
runs: split
"""
# %% grade_id="split"
# %%px --setup
def encoder_step(encoder, sources, c, decoder_rank):
    _, (h, cell) = encoder(sources)
    phi_h = functions.send(h, c, decoder_rank, tag=0)
    phi_cell = functions.send(cell, c, decoder_rank, tag=1)
    functions.pseudo_connect(phi_h, phi_cell).backward()


def decoder_step(decoder, targets, c, encoder_rank, divisor=None):
    h = functions.recv(c, encoder_rank, tag=0)
    cell = functions.recv(c, encoder_rank, tag=1)
    return decoder((h, cell), targets, divisor)

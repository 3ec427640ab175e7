"""The encoder sends, and never calls backward.

fails: split/loss, split/decoder, split/encoder, split/messages
shows: The encoder must call backward() on what connects all its delegates
points: 8
runs: split
"""
# %% grade_id="split"
# %%px --setup
def encoder_step(encoder, sources, c, decoder_rank):
    _, (h, cell) = encoder(sources)
    functions.send(h, c, decoder_rank, tag=0)
    functions.send(cell, c, decoder_rank, tag=1)


def decoder_step(decoder, targets, c, encoder_rank, divisor=None):
    h = functions.recv(c, encoder_rank, tag=0)
    cell = functions.recv(c, encoder_rank, tag=1)
    loss = decoder((h, cell), targets, divisor)
    loss.backward()
    return loss.item()

"""The loss is divided by the number of ranks, as in data parallelism.

fails: split/loss, split/decoder, split/encoder
shows: the loss was divided by the number of ranks
points: 9
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
    loss = decoder((h, cell), targets, divisor) / c.size
    loss.backward()
    return loss.item()

"""Only the delegate of h is called: what comes back through the cell is lost.

fails: split/encoder
shows: delegate was forgotten or detached
points: 11
runs: split
"""
# %% grade_id="split"
# %%px --setup
def encoder_step(encoder, sources, c, decoder_rank):
    _, (h, cell) = encoder(sources)
    phi_h = functions.send(h, c, decoder_rank, tag=0)
    phi_cell = functions.send(cell, c, decoder_rank, tag=1)
    phi_h.backward()


def decoder_step(decoder, targets, c, encoder_rank, divisor=None):
    h = functions.recv(c, encoder_rank, tag=0)
    cell = functions.recv(c, encoder_rank, tag=1)
    loss = decoder((h, cell), targets, divisor)
    loss.backward()
    return loss.item()

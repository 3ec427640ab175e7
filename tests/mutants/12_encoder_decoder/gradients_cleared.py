"""The encoder's step clears its gradients first, where it is to add to them.

fails: split/encoder
shows: The gradients that existed before were lost
points: 11
runs: split
"""
# %% grade_id="split"
# %%px --setup
def encoder_step(encoder, sources, c, decoder_rank):
    encoder.zero_grad()
    _, (h, cell) = encoder(sources)
    phi_h = functions.send(h, c, decoder_rank, tag=0)
    phi_cell = functions.send(cell, c, decoder_rank, tag=1)
    functions.pseudo_connect(phi_h, phi_cell).backward()


def decoder_step(decoder, targets, c, encoder_rank, divisor=None):
    h = functions.recv(c, encoder_rank, tag=0)
    cell = functions.recv(c, encoder_rank, tag=1)
    loss = decoder((h, cell), targets, divisor)
    loss.backward()
    return loss.item()

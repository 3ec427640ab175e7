"""The state is detached before it is sent, to save memory.

fails: split/encoder, split/messages
shows: was nothing detached before
points: 10
runs: split
"""
# %% grade_id="split"
# %%px --setup
def encoder_step(encoder, sources, c, decoder_rank):
    _, (h, cell) = encoder(sources)
    phi_h = functions.send(h.detach(), c, decoder_rank, tag=0)
    phi_cell = functions.send(cell.detach(), c, decoder_rank, tag=1)
    functions.pseudo_connect(phi_h, phi_cell).backward()


def decoder_step(decoder, targets, c, encoder_rank, divisor=None):
    h = functions.recv(c, encoder_rank, tag=0)
    cell = functions.recv(c, encoder_rank, tag=1)
    loss = decoder((h, cell), targets, divisor)
    loss.backward()
    return loss.item()

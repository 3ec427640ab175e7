"""Only the last layer's state is sent, and every layer of the decoder starts from it.

fails: split/loss, split/decoder, split/encoder, split/messages
shows: Only the last layer's state crossed, and it was used for all layers
points: 8
runs: split
"""
# %% grade_id="split"
# %%px --setup
def encoder_step(encoder, sources, c, decoder_rank):
    _, (h, cell) = encoder(sources)
    phi_h = functions.send(h[-1:], c, decoder_rank, tag=0)
    phi_cell = functions.send(cell[-1:], c, decoder_rank, tag=1)
    functions.pseudo_connect(phi_h, phi_cell).backward()


def decoder_step(decoder, targets, c, encoder_rank, divisor=None):
    state = [functions.recv(c, encoder_rank, tag=tag) for tag in (0, 1)]
    layers = decoder.rnn.num_layers
    loss = decoder(tuple(part.expand(layers, -1, -1).contiguous() for part in state), targets, divisor)
    loss.backward()
    return loss.item()

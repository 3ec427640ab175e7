"""backward is called on each of the two delegates, and the first call has freed the graph.

fails: split/loss, split/decoder, split/encoder, split/messages
shows: join them with pseudo_connect, and call backward() once for both
points: 8
runs: split
"""
# %% grade_id="split"
# %%px --setup
def encoder_step(encoder, sources, c, decoder_rank):
    _, (h, cell) = encoder(sources)
    a = functions.send(h, c, decoder_rank, tag=0)
    b = functions.send(cell, c, decoder_rank, tag=1)
    a.backward()
    b.backward()

def decoder_step(decoder, targets, c, encoder_rank, divisor=None):
    h = functions.recv(c, encoder_rank, tag=0)
    cell = functions.recv(c, encoder_rank, tag=1)
    loss = decoder((h, cell), targets, divisor)
    loss.backward()
    return loss.item()


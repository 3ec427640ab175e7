"""The loss is returned as a tensor.

fails: split/loss
shows: decoder_step must return the loss as a number, loss.item()
points: 11
runs: split
"""
# %% grade_id="split"
# %%px
def encoder_step(encoder, sources, c, decoder_rank):
    _, state = encoder(sources)
    functions.send(state, c, rank=decoder_rank).backward()

def decoder_step(decoder, targets, c, encoder_rank, divisor=None):
    loss = decoder(functions.recv(c, rank=encoder_rank), targets, divisor)
    loss.backward()
    return loss

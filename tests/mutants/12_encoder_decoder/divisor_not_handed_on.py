"""decoder_step does not hand the divisor on.

fails: split/loss, split/decoder, split/encoder, hybrid/decoders, hybrid/encoders
shows: Pass the divisor on to the decoder
points: 7
"""
# %% grade_id="split"
# %%px
def encoder_step(encoder, sources, c, decoder_rank):
    _, (h, cell) = encoder(sources)
    a, b = functions.send(h, c, rank=decoder_rank), functions.send(cell, c, rank=decoder_rank)
    (a + b).backward()

def decoder_step(decoder, targets, c, encoder_rank, divisor=None):
    state = functions.recv(c, rank=encoder_rank), functions.recv(c, rank=encoder_rank)
    loss = decoder(state, targets)
    loss.backward()
    return loss.item()

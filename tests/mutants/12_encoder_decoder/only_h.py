"""Only h is sent; the decoder takes a cell of zeros.

fails: split/loss, split/decoder, split/encoder, split/messages
shows: The decoder began with the right h and a cell of zeros
shows: Fewer bytes crossed than the state has
points: 8
runs: split
"""
# %% grade_id="split"
# %%px --setup
def encoder_step(encoder, sources, c, decoder_rank):
    _, (h, _) = encoder(sources)
    functions.send(h, c, decoder_rank).backward()


def decoder_step(decoder, targets, c, encoder_rank, divisor=None):
    h = functions.recv(c, encoder_rank)
    loss = decoder((h, torch.zeros_like(h)), targets, divisor)
    loss.backward()
    return loss.item()

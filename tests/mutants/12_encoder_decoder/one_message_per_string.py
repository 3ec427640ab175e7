"""Each string's state is a message of its own.

fails: split/messages
shows: they crossed in too many messages
points: 11
runs: split
"""
# %% grade_id="split"
# %%px --setup
def encoder_step(encoder, sources, c, decoder_rank):
    _, (h, cell) = encoder(sources)
    phis = [functions.send(torch.stack([h[:, i], cell[:, i]]), c, decoder_rank) for i in range(len(sources))]
    functions.pseudo_connect(phis[0], *phis[1:]).backward()


def decoder_step(decoder, targets, c, encoder_rank, divisor=None):
    states = torch.stack([functions.recv(c, encoder_rank) for _ in targets], dim=2)
    loss = decoder((states[0].contiguous(), states[1].contiguous()), targets, divisor)
    loss.backward()
    return loss.item()

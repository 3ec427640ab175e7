"""One call of torch.autograd.backward has both delegates, and the loss is read by its item."""
# %% grade_id="split"
# %%px --setup
def encoder_step(encoder, sources, c, decoder_rank):
    state = encoder(sources)[1]
    torch.autograd.backward([functions.send(tensor, c, decoder_rank, tag=1 + tag) for tag, tensor in enumerate(state)])


def decoder_step(decoder, targets, c, encoder_rank, divisor=None):
    state = [functions.recv(c, encoder_rank, tag=tag) for tag in (1, 2)]
    loss = decoder(tuple(state), targets, divisor=divisor)
    torch.autograd.backward(loss)
    return loss.detach().numpy().item()

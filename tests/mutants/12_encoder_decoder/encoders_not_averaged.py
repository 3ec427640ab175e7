"""Only the decoders average their gradients.

fails: hybrid/encoders
shows: Encoders and decoders each average with their own copies
points: 11
"""
# %% grade_id="hybrid"
# %%px --setup
def hybrid_step(module, pair, copies, sources, targets):
    if pair.rank == 0:
        encoder_step(module, sources, pair, 1)
    else:
        places = copies.allreduce_obj(sum(map(len, targets)))
        decoder_step(module, targets, pair, 0, divisor=places / copies.size)
        copies.multi_node_mean_grad(module)

"""The number of pairs is written down as 2.

fails: hybrid/decoders, hybrid/encoders
shows: Use copies.size for the number of pairs
points: 10
"""
# %% grade_id="hybrid"
# %%px --setup
def hybrid_step(module, pair, copies, sources, targets):
    if pair.rank == 0:
        encoder_step(module, sources, pair, 1)
    else:
        places = copies.allreduce_obj(sum(map(len, targets)))
        decoder_step(module, targets, pair, 0, divisor=places / 2)
    copies.multi_node_mean_grad(module)

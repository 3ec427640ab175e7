"""The decoders divide by the number of sequences of all.

fails: hybrid/decoders, hybrid/encoders
shows: This is right up to a factor
points: 10
"""
# %% grade_id="hybrid"
# %%px
def hybrid_step(module, pair, copies, sources, targets):
    if pair.rank == 0:
        encoder_step(module, sources, pair, 1)
    else:
        n = copies.allreduce_obj(len(targets))
        decoder_step(module, targets, pair, 0, n / copies.size)
    copies.multi_node_mean_grad(module)

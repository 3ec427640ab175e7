"""Each decoder divides by its own number of places.

fails: hybrid/decoders, hybrid/encoders
shows: Each pair divided by its own number of tokens
points: 10
"""
# %% grade_id="hybrid"
# %%px --setup
def hybrid_step(module, pair, copies, sources, targets):
    if pair.rank == 0:
        encoder_step(module, sources, pair, 1)
    else:
        decoder_step(module, targets, pair, 0)
    copies.multi_node_mean_grad(module)

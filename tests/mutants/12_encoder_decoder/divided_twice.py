"""Divided by the places of all, and then averaged: half of what is right.

fails: hybrid/decoders, hybrid/encoders
shows: This is half of what is right
points: 10
"""
# %% grade_id="hybrid"
# %%px --setup
def hybrid_step(module, pair, copies, sources, targets):
    if pair.rank == 0:
        encoder_step(module, sources, pair, 1)
    else:
        places = copies.allreduce_obj(sum(map(len, targets)))
        decoder_step(module, targets, pair, 0, divisor=places)
    copies.multi_node_mean_grad(module)

"""The gradients are averaged inside the pair, where the modules are not the same.

fails: hybrid/decoders, hybrid/encoders
shows: Gradients are averaged among ranks that hold the same module
points: 10
"""
# %% grade_id="hybrid"
# %%px --setup
def hybrid_step(module, pair, copies, sources, targets):
    if pair.rank == 0:
        encoder_step(module, sources, pair, 1)
    else:
        places = copies.allreduce_obj(sum(map(len, targets)))
        decoder_step(module, targets, pair, 0, divisor=places / copies.size)
    pair.multi_node_mean_grad(module)

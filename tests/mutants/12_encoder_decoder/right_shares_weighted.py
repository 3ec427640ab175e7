"""Each pair divides by its own number of places; the gradients are weighted with the shares before they are added up."""
# %% grade_id="hybrid"
# %%px --setup
def hybrid_step(module, pair, copies, sources, targets):
    mine = sum(map(len, targets))
    encoder_step(module, sources, pair, 1) if pair.rank == 0 else decoder_step(module, targets, pair, 0)
    weight = mine / sum(copies.allgather_obj(mine))
    for parameter in module.parameters():
        parameter.grad = copies.allreduce(parameter.grad * weight)

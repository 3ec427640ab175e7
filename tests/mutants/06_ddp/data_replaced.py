"""The tensors get new memory, with the right numbers in it.

fails: broadcast/parameters, broadcast/buffers
shows: has the right numbers in new memory
points: 17
runs: broadcast
"""
# %% grade_id="broadcast"
# %%px --setup
def broadcast_state(model, group=None):
    for tensor in [*model.parameters(), *model.buffers()]:
        new = tensor.detach().clone()
        dist.broadcast(new, group=group, group_src=0)
        tensor.data = new

"""The state_dict is broadcast: buffers that are not in it stay as each rank drew them.

fails: broadcast/buffers
shows: 3.unsaved was not broadcast
shows: persistent=False
points: 18
runs: broadcast
"""
# %% grade_id="broadcast"
# %%px --setup
def broadcast_state(model, group=None):
    for tensor in model.state_dict().values():
        dist.broadcast(tensor, group=group, group_src=0)

"""Every rank keeps the state that it drew.

fails: broadcast/parameters, broadcast/buffers, hooks/mean, hooks/unused, no-sync/sum
shows: rank 1 differs from rank 0 after construction
points: 14
"""
# %% grade_id="broadcast"
# %%px --setup
def broadcast_state(model, group=None):
    torch.manual_seed(0)

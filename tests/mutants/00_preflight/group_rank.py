"""The node is read from GROUP_RANK, which not every launcher sets.

fails: place/elsewhere
shows: compute the node from RANK and LOCAL_WORLD_SIZE
points: 9
"""
# %% grade_id="place"
# %%px --setup
def where_am_i():
    return tuple(int(os.environ[name]) for name in ("RANK", "GROUP_RANK", "LOCAL_RANK"))

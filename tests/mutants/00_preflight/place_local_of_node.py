"""The local rank is rank // node.

fails: place/here, place/elsewhere
shows: the number of times that LOCAL_WORLD_SIZE goes into RANK
points: 8
runs: place
"""
# %% grade_id="place"
# %%px --setup
def where_am_i():
    rank, n = int(os.environ["RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    node = rank // n
    return rank, node, rank // max(node, 1)

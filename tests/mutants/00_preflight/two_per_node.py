"""The node is computed for two ranks on each node, as they are here.

fails: place/elsewhere
shows: This is right only for 2 ranks per node
points: 9
"""
# %% grade_id="place"
# %%px --setup
def where_am_i():
    rank = int(os.environ["RANK"])
    return rank, rank // 2, rank % 2

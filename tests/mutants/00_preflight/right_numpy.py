"""The numbers are numpy's, and the answer is a list."""
# %% grade_id="place"
# %%px --setup
import numpy as np

def where_am_i():
    rank, ranks_per_node = np.int64(os.environ["RANK"]), np.int64(os.environ["LOCAL_WORLD_SIZE"])
    return [rank, *np.divmod(rank, ranks_per_node)]

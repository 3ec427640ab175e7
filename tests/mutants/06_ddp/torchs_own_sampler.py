"""PyTorch's DistributedSampler under another name.

fails: sampler/padding, sampler/epochs
shows: are closed in this check
points: 17
"""
# %% grade_id="sampler"
# %%px --setup
class PaddedSampler(torch.utils.data.DistributedSampler):
    def __init__(self, n, rank, world_size, seed=0):
        super().__init__(range(n), world_size, rank, seed=seed)
        self.n = n

"""Samples that do not divide are dropped.

fails: sampler/padding, sampler/epochs
shows: Samples were dropped
shows: the order is right, but only
points: 17
"""
# %% grade_id="sampler"
# %%px --setup
class PaddedSampler(torch.utils.data.Sampler):
    def __init__(self, n, rank, world_size, seed=0):
        self.n, self.rank, self.world_size, self.seed, self.epoch = n, rank, world_size, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.n // self.world_size

    def __iter__(self):
        order = torch.randperm(self.n, generator=torch.Generator().manual_seed(self.seed + self.epoch)).tolist()
        total = len(self) * self.world_size
        order = order[:total]
        return iter(order[self.rank::self.world_size])

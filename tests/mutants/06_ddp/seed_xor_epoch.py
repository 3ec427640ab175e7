"""Seed and epoch are combined by an exclusive or, which is their sum for the seed 0.

fails: sampler/epochs
shows: under a generator seeded with seed + epoch
points: 18
"""
# %% grade_id="sampler"
# %%px --setup
class PaddedSampler(torch.utils.data.Sampler):
    def __init__(self, n, rank, world_size, seed=0):
        self.n, self.rank, self.world_size, self.seed, self.epoch = n, rank, world_size, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return math.ceil(self.n / self.world_size)

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed ^ self.epoch)
        order = torch.randperm(self.n, generator=g).tolist()
        order = (order * self.world_size)[:len(self) * self.world_size]
        return iter(order[self.rank::self.world_size])

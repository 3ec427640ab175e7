"""The generator is seeded in set_epoch only, so a second iteration in the same epoch has another order.

fails: sampler/epochs
shows: A second iteration in the same epoch has a different order
points: 18
"""
# %% grade_id="sampler"
# %%px --setup
class PaddedSampler(torch.utils.data.Sampler):
    def __init__(self, n, rank, world_size, seed=0):
        self.n, self.rank, self.world_size, self.seed, self.epoch = n, rank, world_size, seed, 0
        self.g = torch.Generator().manual_seed(seed)

    def set_epoch(self, epoch):
        self.epoch = epoch
        self.g.manual_seed(self.seed + epoch)

    def __len__(self):
        return math.ceil(self.n / self.world_size)

    def __iter__(self):
        order = torch.randperm(self.n, generator=self.g).tolist()
        order = (order * self.world_size)[:len(self) * self.world_size]
        return iter(order[self.rank::self.world_size])

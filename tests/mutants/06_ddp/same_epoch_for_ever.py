"""The epoch is ignored: every epoch has the same order.

fails: sampler/epochs
shows: draw with seed + epoch
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
        order = torch.randperm(self.n, generator=torch.Generator().manual_seed(self.seed)).tolist()
        total = len(self) * self.world_size
        order = (order * math.ceil(total / self.n))[:total]
        return iter(order[self.rank::self.world_size])

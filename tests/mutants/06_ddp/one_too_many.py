"""n // world_size + 1 samples for each rank, which is one too many where n divides.

fails: sampler/padding, sampler/epochs
shows: the same number of samples, but it is too large
shows: the order from its beginning
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
        return self.n // self.world_size + 1

    def __iter__(self):
        order = torch.randperm(self.n, generator=torch.Generator().manual_seed(self.seed + self.epoch)).tolist()
        total = len(self) * self.world_size
        order = (order * self.world_size)[:total]
        return iter(order[self.rank::self.world_size])

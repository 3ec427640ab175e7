"""The order is repeated once at most: not enough for one sample on four ranks.

fails: sampler/padding, sampler/epochs
shows: different numbers of samples
shows: the order from its beginning, as often as needed
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
        return math.ceil(self.n / self.world_size)

    def __iter__(self):
        order = torch.randperm(self.n, generator=torch.Generator().manual_seed(self.seed + self.epoch)).tolist()
        total = len(self) * self.world_size
        order = order + order[:total - self.n]
        return iter(order[self.rank::self.world_size])

"""The order is drawn from torch's global generator, seeded on the way.

fails: sampler/epochs
shows: torch's global generator was used, and seeded
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
        torch.manual_seed(self.seed + self.epoch)
        order = torch.randperm(self.n).tolist()
        total = len(self) * self.world_size
        order = (order * math.ceil(total / self.n))[:total]
        return iter(order[self.rank::self.world_size])

"""Each rank takes a contiguous block in place of every world_size-th sample.

fails: sampler/epochs
shows: The right samples are on the wrong ranks
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
        order = torch.randperm(self.n, generator=torch.Generator().manual_seed(self.seed + self.epoch)).tolist()
        total = len(self) * self.world_size
        order = (order * math.ceil(total / self.n))[:total]
        return iter(order[self.rank * len(self):(self.rank + 1) * len(self)])

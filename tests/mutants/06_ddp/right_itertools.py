"""Parameters and buffers travel as one pickled object, and are copied in place; the sampler walks with itertools."""
# %% grade_id="broadcast"
# %%px --setup
def broadcast_state(model, group=None):
    mine = [*model.parameters(), *model.buffers()]
    box = [[tensor.detach().cpu() for tensor in mine]]
    dist.broadcast_object_list(box, group=group, group_src=0)
    with torch.no_grad():
        for tensor, first in zip(mine, box[0]):
            tensor.copy_(first)

# %% grade_id="sampler"
# %%px --setup
import itertools


class PaddedSampler(torch.utils.data.Sampler):
    def __init__(self, n, rank, world_size, seed=0):
        self.n, self.rank, self.world_size, self.seed = n, rank, world_size, seed
        self.set_epoch(0)

    def set_epoch(self, epoch):
        generator = torch.Generator()
        generator.manual_seed(self.seed + epoch)
        self.order = torch.randperm(self.n, generator=generator).tolist()

    def __len__(self):
        return -(-self.n // self.world_size)

    def __iter__(self):
        return itertools.islice(itertools.cycle(self.order), self.rank, len(self) * self.world_size, self.world_size)

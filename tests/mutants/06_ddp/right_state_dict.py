"""The state travels as one pickled object, and is loaded in place; the sampler walks with itertools."""
# %% grade_id="broadcast"
# %%px --setup
def broadcast_state(model, group=None):
    box = [model.state_dict()]
    dist.broadcast_object_list(box, group=group, group_src=0)
    model.load_state_dict(box[0])

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

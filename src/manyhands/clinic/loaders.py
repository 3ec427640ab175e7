"""What a rank's data loaders give out: how long the script waits for them, which order a sampler draws, and whether
every rank reads the same data set."""

import hashlib
import time

SHOWN = 64  # indices of a drawn order that are kept


def digest(value):
    """A short name of a tensor's, or any value's, content."""
    import torch

    if isinstance(value, torch.Tensor):
        data = value.detach().cpu().contiguous()
        if data.is_floating_point() or data.is_complex():
            data = data.reshape(-1).view(torch.uint8) if data.numel() else data
        text = str(tuple(value.shape)).encode() + data.numpy().tobytes()
    elif isinstance(value, (list, tuple)):
        text = "".join(digest(one) for one in value).encode()
    elif isinstance(value, dict):
        text = "".join(f"{name}{digest(one)}" for name, one in value.items()).encode()
    elif hasattr(value, "tobytes"):
        text = value.tobytes()
    else:
        text = repr(value).encode()
    return hashlib.blake2b(text, digest_size=8).hexdigest()


class Loaders:
    """Observers of torch's DataLoader and DistributedSampler. `waited(start, stop)` is told of each wait for a batch;
    `drawn()` whenever a sampler has drawn an order."""

    def __init__(self, waited, drawn):
        self.orders, self.loaders = [], {}
        self.cut = None  # the data set whose epoch ends here
        self.last = None  # the data set whose loader has given the last batch
        self._waited, self._drawn = waited, drawn
        self._samplers = {}
        self._install()

    def _install(self):
        from torch.utils.data import DistributedSampler
        from torch.utils.data.dataloader import DataLoader, _BaseDataLoaderIter

        draw, make, give = DistributedSampler.__iter__, DataLoader.__iter__, _BaseDataLoaderIter.__next__

        def __iter__(sampler):
            order = list(draw(sampler))
            self._samplers.setdefault(id(sampler), (len(self._samplers), sampler))  # kept: its id stays its own
            self.orders.append({"sampler": self._samplers[id(sampler)][0], "epoch": sampler.epoch,
                                "shuffle": sampler.shuffle, "rank": sampler.rank, "replicas": sampler.num_replicas,
                                "length": len(order), "order": order[:SHOWN]})
            self._drawn()
            return iter(order)

        def iterate(loader):
            self.loaders[id(loader.dataset)] = loader
            if self.cut == id(loader.dataset):
                self.cut = None  # the next epoch begins
            return make(loader)

        def __next__(iterator):
            if self.cut == id(iterator._dataset):
                raise StopIteration
            start = time.perf_counter()
            batch = give(iterator)
            self.last = id(iterator._dataset)
            self._waited(start, time.perf_counter())
            return batch

        DistributedSampler.__iter__, DataLoader.__iter__, _BaseDataLoaderIter.__next__ = __iter__, iterate, __next__

    def drawn_twice(self):
        """Whether a sampler that shuffles has drawn a second order."""
        drawn = [order["sampler"] for order in self.orders if order["shuffle"]]
        return len(drawn) > len(set(drawn))

    def facts(self):
        """The loader of the training data as plain values; three of its rows by digest, drawn under one seed, so that
        ranks can be compared. None where there is none."""
        import torch

        loader = self.loaders.get(self.training)
        if loader is None:
            return None
        about = {"samplers": [type(loader.sampler).__name__, type(loader.batch_sampler).__name__],
                 "batch_size": loader.batch_size, "rows": None, "length": None}
        try:
            about["length"] = len(loader.dataset)
            places = sorted({0, about["length"] // 2, about["length"] - 1})
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                about["rows"] = [digest(loader.dataset[place]) for place in places]
        except Exception:  # a data set without length or places, or one that does not like to be asked
            pass
        return about

    training = None  # the data set of the first training step

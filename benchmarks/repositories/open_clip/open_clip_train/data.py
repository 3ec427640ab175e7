"""Pairs of images and texts, streamed from shards of different sizes that are made here."""

from dataclasses import dataclass
from multiprocessing import Value

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

CLASSES = 16


class SharedEpoch:
    def __init__(self, epoch=0):
        self.shared_epoch = Value("i", epoch)

    def set_value(self, epoch):
        self.shared_epoch.value = epoch

    def get_value(self):
        return self.shared_epoch.value


@dataclass
class DataInfo:
    dataloader: DataLoader
    shared_epoch: SharedEpoch = None

    def set_epoch(self, epoch):
        if self.shared_epoch is not None:
            self.shared_epoch.set_value(epoch)


def samples_of(shard):
    """The pairs of one shard: a colour and its words."""
    generator = torch.Generator().manual_seed(100 + shard)
    for _ in range(10 + 5 * (shard % 3)):
        label = int(torch.randint(CLASSES, (), generator=generator))
        image = torch.randn(3, 16, 16, generator=generator) + torch.linspace(-1, 1, CLASSES)[label]
        text = torch.randint(1, 32, (8,), generator=generator)
        text[0], text[-1] = label + 32, 63
        yield image, text


def split_by_node(shards, args):
    return shards[args.rank::args.world_size] if args.distributed else shards


def split_by_worker(shards):
    worker = get_worker_info()
    return shards[worker.id::worker.num_workers] if worker else shards


class Pairs(IterableDataset):
    def __init__(self, args, shards, is_train, shared_epoch, num_samples):
        self.args, self.shards, self.is_train = args, shards, is_train
        self.shared_epoch, self.num_samples = shared_epoch, num_samples

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.args.seed + self.shared_epoch.get_value())
        shards = list(self.shards)
        if self.is_train:
            shards = [shards[i] for i in torch.randperm(len(shards), generator=generator).tolist()]
            shards = split_by_node(shards, self.args)
        shards, given = split_by_worker(shards), 0
        while given < self.num_samples:  # an epoch has the same number of samples on each rank
            for shard in shards:
                for sample in samples_of(shard):
                    if given == self.num_samples:
                        return
                    yield sample
                    given += 1


def get_wds_dataset(args, is_train, epoch=0):
    shared_epoch = SharedEpoch(epoch=epoch)
    shards = range(args.num_shards) if is_train else range(1000, 1002)
    num_batches = args.train_num_samples // (args.batch_size * args.world_size) if is_train else 2
    dataset = Pairs(args, shards, is_train, shared_epoch, num_batches * args.batch_size)
    dataloader = DataLoader(dataset, batch_size=args.batch_size, num_workers=args.workers, pin_memory=True)
    dataloader.num_batches, dataloader.num_samples = num_batches, num_batches * args.batch_size * args.world_size
    return DataInfo(dataloader=dataloader, shared_epoch=shared_epoch)


def get_data(args, epoch=0):
    return {"train": get_wds_dataset(args, True, epoch), "val": get_wds_dataset(args, False)}

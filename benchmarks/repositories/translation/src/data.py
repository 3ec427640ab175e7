import random

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Sampler

PAD, BOS, EOS, WORDS = 0, 1, 2, 60


def sentences(number, seed):
    """Sentences of 3 to 20 words; their translation has the words in the reverse order."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(number):
        words = [draw.randrange(3, WORDS) for _ in range(draw.randrange(3, 21))]
        pairs.append((words, [WORDS + 2 - word for word in reversed(words)]))
    return pairs


class BucketSampler(Sampler):
    """Batches of sentences of about the same length, in an order that all ranks draw alike; each takes its part."""

    def __init__(self, lengths, batch_size, rank, world_size, seed):
        self.lengths, self.batch_size, self.epoch = lengths, batch_size, 0
        self.rank, self.world_size, self.seed = rank, world_size, seed

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        draw = random.Random(self.seed + self.epoch)
        order = sorted(range(len(self.lengths)), key=lambda i: self.lengths[i] + draw.random())
        batches = [order[i:i + self.batch_size] for i in range(0, len(order), self.batch_size)]
        draw.shuffle(batches)
        batches = batches[:len(batches) // self.world_size * self.world_size]
        return iter(batches[self.rank::self.world_size])

    def __len__(self):
        return -(-len(self.lengths) // self.batch_size) // self.world_size


def collate(pairs):
    columns = [[torch.tensor([BOS, *words, EOS]) for words in column] for column in zip(*pairs)]
    return tuple(pad_sequence(column, padding_value=PAD) for column in columns)


def get_data(opts, rank, world_size):
    train, valid = sentences(128, seed=1), sentences(48, seed=2)[rank::world_size]
    sampler = BucketSampler([len(src) for src, _ in train], opts.batch, rank, world_size, opts.seed)
    train_dl = DataLoader(train, batch_sampler=sampler, collate_fn=collate, pin_memory=True)
    valid_dl = DataLoader(valid, batch_size=opts.batch, collate_fn=collate)
    return train_dl, valid_dl, WORDS, WORDS, PAD


def create_mask(src, tgt, pad_idx, device):
    src_mask = torch.zeros((src.shape[0], src.shape[0]), device=device).type(torch.bool)
    tgt_mask = torch.triu(torch.ones((tgt.shape[0], tgt.shape[0]), device=device), diagonal=1).type(torch.bool)
    return src_mask, tgt_mask, (src == pad_idx).transpose(0, 1), (tgt == pad_idx).transpose(0, 1)

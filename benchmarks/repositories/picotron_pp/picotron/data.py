"""Micro-batches of tokens; all stages of a pipeline read the same."""

import torch
from torch.utils.data import DataLoader, DistributedSampler

from . import process_group_manager as pgm


class MicroBatchDataLoader(DataLoader):
    def __init__(self, micro_batch_size, seq_length, grad_acc_steps, vocab_size, num_samples, pin_memory=True):
        self.micro_batch_size, self.seq_length, self.grad_acc_steps = micro_batch_size, seq_length, grad_acc_steps
        self.global_batch_size = micro_batch_size * grad_acc_steps * pgm.process_group_manager.dp_world_size
        rows = torch.randint(vocab_size, (num_samples, seq_length + 1), generator=torch.Generator().manual_seed(7))
        self.sampler_ = DistributedSampler(rows, num_replicas=pgm.process_group_manager.dp_world_size,
                                           rank=pgm.process_group_manager.dp_rank, shuffle=False)
        super().__init__(rows, batch_size=micro_batch_size, sampler=self.sampler_, collate_fn=self.collate_batch,
                         pin_memory=pin_memory)
        self.batches = None

    def collate_batch(self, batch):
        rows = torch.stack(batch)
        return {"input_ids": rows[:, :-1].contiguous(), "target_ids": rows[:, 1:].contiguous()}

    def __next__(self):
        if self.batches is None:
            self.batches = super().__iter__()
        try:
            return next(self.batches)
        except StopIteration:
            self.sampler_.set_epoch(self.sampler_.epoch + 1)
            self.batches = super().__iter__()
            return next(self.batches)

"""The groups of a grid of ranks: tensor parallel inside, data parallel outside."""

import os

import torch
import torch.distributed as dist

process_group_manager = None


class ProcessGroupManager:
    def __init__(self, tp_size, dp_size):
        self.global_rank, self.world_size = dist.get_rank(), dist.get_world_size()
        self.local_rank = int(os.environ.get("LOCAL_RANK", self.global_rank % self.world_size))
        assert self.world_size == tp_size * dp_size
        self.grid = torch.arange(self.world_size).view(dp_size, tp_size)
        self.dp_rank, self.tp_rank = (self.grid == self.global_rank).nonzero().flatten().tolist()
        self.tp_group = dist.new_subgroups_by_enumeration([self.grid[d, :].tolist() for d in range(dp_size)])[0]
        self.dp_group = dist.new_subgroups_by_enumeration([self.grid[:, t].tolist() for t in range(tp_size)])[0]
        self.tp_group_ids, self.dp_group_ids = self.grid[self.dp_rank].tolist(), self.grid[:, self.tp_rank].tolist()
        self.tp_world_size, self.dp_world_size = tp_size, dp_size

    def __str__(self):
        return f"TP({self.tp_world_size})-DP({self.dp_world_size})-Rank({self.global_rank})"


def setup_process_group_manager(tp_size, dp_size):
    global process_group_manager
    process_group_manager = ProcessGroupManager(tp_size, dp_size)

"""The groups of a grid of ranks: a pipeline inside, data parallel outside."""

import torch
import torch.distributed as dist

process_group_manager = None


class ProcessGroupManager:
    def __init__(self, pp_size, dp_size):
        self.global_rank, self.world_size = dist.get_rank(), dist.get_world_size()
        assert self.world_size == pp_size * dp_size
        self.grid = torch.arange(self.world_size).view(dp_size, pp_size)
        self.dp_rank, self.pp_rank = (self.grid == self.global_rank).nonzero().flatten().tolist()
        self.pp_group = dist.new_subgroups_by_enumeration([self.grid[d, :].tolist() for d in range(dp_size)])[0]
        self.dp_group = dist.new_subgroups_by_enumeration([self.grid[:, p].tolist() for p in range(pp_size)])[0]
        # the first and the last stage of a pipeline hold the same embedding
        ends = [self.grid[d, [0, -1]].tolist() for d in range(dp_size)]
        self.embedding_group = [dist.new_group(ranks) for ranks in ends][self.dp_rank]
        self.pp_group_ids = self.grid[self.dp_rank].tolist()
        self.pp_world_size, self.dp_world_size = pp_size, dp_size
        self.pp_is_first_stage, self.pp_is_last_stage = self.pp_rank == 0, self.pp_rank == pp_size - 1
        self.pp_next_rank = None if self.pp_is_last_stage else self.pp_group_ids[self.pp_rank + 1]
        self.pp_prev_rank = None if self.pp_is_first_stage else self.pp_group_ids[self.pp_rank - 1]


def setup_process_group_manager(pp_size, dp_size):
    global process_group_manager
    process_group_manager = ProcessGroupManager(pp_size, dp_size)

"""f and g: where a tensor enters and leaves the part of a network that is cut over a group.

The two functions are those of `manyhands.links.conjugate`; here they take a process group of
torch.distributed.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

from manyhands.links import conjugate


def copy_to(x: torch.Tensor, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    """x as it is, for ranks that each go on with a part of the weights: f of Megatron-LM.

    Forward: sends nothing. Backward: an all-reduce sums the gradients of all ranks, each of which
    has only what came through its own part. x must be the same on all ranks of `group`, a process
    group of torch.distributed (None: all ranks), and backward must pass here on all of them.
    ValueError on a rank outside the group. After Shoeybi et al. 2019, Megatron-LM, arXiv
    1909.08053, section 3.
    """
    return conjugate.copy_to_ranks(_Group(x, group, "copy_to"), x)


def reduce_from(x: torch.Tensor, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    """The sum of all ranks' x, on all ranks of `group`: g of Megatron-LM.

    Forward: an all-reduce; x keeps its value. Backward: sends nothing; the gradient of the sum,
    which must be the same on all ranks, is that of each x. Shapes and dtypes must agree, and all
    ranks of the group must call it; a group of one rank sends nothing. ValueError on a rank outside
    the group. After Shoeybi et al. 2019, section 3.
    """
    return conjugate.sum_over_ranks(_Group(x, group, "reduce_from"), x)


class _Group:
    """A process group as the communicator that `conjugate` asks for.

    It asks for one thing only, its `allreduce`.
    """

    def __init__(self, x: object, group: dist.ProcessGroup | None, call: str) -> None:
        if not isinstance(x, torch.Tensor):
            raise ValueError(f"{call}: a tensor is needed, not {type(x).__name__}.")
        if dist.get_rank(group) < 0:  # all_reduce would only warn, and leave x as it is
            raise ValueError(
                f"{call}: rank {dist.get_rank()} is not in this group. Call it on the group's ranks"
                " only."
            )
        self.group = group

    def allreduce(self, x: torch.Tensor) -> torch.Tensor:
        # all_reduce writes into it, and NCCL wants it dense
        total = x.clone(memory_format=torch.contiguous_format)
        if dist.get_world_size(self.group) > 1:
            dist.all_reduce(total, group=self.group)
        return total

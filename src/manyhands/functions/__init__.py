"""Communication that autograd can differentiate.

The ranks' programs are seen as one: each backward is the exact adjoint of its forward as a function
of all ranks' data, and the objective is the sum of what all ranks call `backward()` on. So a loss
that N ranks compute alike from gathered data counts N times.

`torch.compile` cannot trace these calls: in what is to be compiled, call them from a function of
your own with `@torch.compiler.disable`.
"""

from manyhands.functions.collective import allgather, allreduce, alltoall, bcast, gather, scatter
from manyhands.functions.point_to_point import pseudo_connect, recv, send

__all__ = [
    "allgather",
    "allreduce",
    "alltoall",
    "bcast",
    "gather",
    "pseudo_connect",
    "recv",
    "scatter",
    "send",
]

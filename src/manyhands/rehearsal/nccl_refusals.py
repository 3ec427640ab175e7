"""What NCCL's process group refuses in a single call: types, reductions, layouts, devices.

Where each rule comes from (PyTorch 2.13, NCCL 2.30):
* dtypes: `NCCLUtils.hpp`; reductions: `ncclOp` of `ProcessGroupNCCL.cpp`; layouts: `check_gpu_single_tensor` there, and
  which tensors each call gives to it;
* a receive from any rank, sparse tensors, monitored_barrier: refused in `ProcessGroupNCCL.cpp`, distributed_c10d.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from manyhands.rehearsal.trace import CPU_TENSOR, ON_CPU, REPEATED

if TYPE_CHECKING:
    from manyhands.rehearsal.trace import Event

FLOAT8 = {"float8_e5m2", "float8_e4m3fn"}
DTYPES = {
    "int8",
    "uint8",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "bool",
    "bfloat16",
    "complex64",
    "complex128",
} | FLOAT8
REDUCES = {"SUM", "PRODUCT", "MIN", "MAX", "AVG", "PREMUL_SUM"}
# of the tensors, those that go through a buffer
COPIED = {"all_gather": slice(1, None), "reduce_scatter": slice(-1)}
AS_THEY_LIE = {
    "gather": slice(1, None),
    "scatter": slice(None),
    "reduce_scatter_single": slice(None),
    "reduce_scatter_tensor": slice(None),
}  # those whose layout NCCL does not check
# of a column, its first number and those that lie behind it
GLOO_AS_IT_LIES = {"all_reduce", "broadcast", "reduce"}


def find_refusals(event: Event) -> Iterator[tuple[str, str, str]]:
    """Yield what NCCL refuses in one call: (severity, text, remedy)."""
    tensors = event.tensors or tuple(part.tensor for part in event.parts)
    places = range(len(tensors))
    copied, unchecked = (places[which.get(event.call, slice(0))] for which in (COPIED, AS_THEY_LIE))
    for place, tensor in enumerate(tensors):
        if tensor.dtype not in DTYPES:
            yield (
                "fails",
                f"is given {tensor.dtype}, which NCCL does not have",
                "send a different dtype, or the bytes: view(torch.uint8)",
            )
        if tensor.sparse:
            yield "fails", "is given a sparse tensor", "give it to_dense()"
        elif event.parts and not tensor.dense:
            yield (
                "fails",
                "is given a tensor with gaps or overlaps in memory",
                "give it contiguous()",
            )
        elif not event.parts and not (tensor.contiguous or tensor.channels_last or place in copied):
            severity, then = ("fails", "")
            if place in unchecked:
                severity, then = "differs", ", and NCCL takes the memory as it is"
            if event.call in GLOO_AS_IT_LIES and not tensor.dense:
                then = ", and gloo's result is wrong as well, because it takes the memory as it is"
            yield (
                severity,
                f"is given a tensor that is not contiguous{then}",
                "give it contiguous(), and copy the result back",
            )
        if event.op == "AVG" and tensor.dtype == "bool":
            yield "fails", "averages bool, which NCCL does not support", "convert to a float first"
    if event.op is not None and event.op not in REDUCES:
        yield (
            "fails",
            f"reduces by {event.op}, which NCCL does not have",
            f"use one of {', '.join(sorted(REDUCES))}",
        )
    if event.call == "monitored_barrier":
        yield "fails", "is for gloo only", 'give it a group of new_group(backend="gloo")'
    if event.text == REPEATED:
        yield (
            "differs",
            (
                "is given one tensor several times as the place for what the ranks send, so each "
                "part overwrites the one before (with gloo, too)"
            ),
            "make one tensor for each rank: [torch.empty_like(x) for _ in range(size)]",
        )
    if event.text == ON_CPU:
        yield (
            "fails",
            "is given the CPU as its device, and NCCL's groups do not accept CPU tensors",
            'give it a group of new_group(backend="gloo"), or no device',
        )
    if event.text == CPU_TENSOR:
        yield (
            "fails",
            (
                "is given a tensor that was made on the CPU, and NCCL's groups do not accept CPU "
                "tensors"
            ),
            "make it on the GPU: device=..., or move it there first",
        )
    if any(part.peer is None for part in event.parts):
        yield "fails", "receives from any rank, which NCCL cannot do", "name the sender: src=..."

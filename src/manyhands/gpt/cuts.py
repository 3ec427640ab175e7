"""How the small GPT is cut for `manyhands.gpt.ways`.

Here are the mesh of a way, its blocks by heads and columns, and a weight that is whole again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor import parallel as tp
from torch.nn.functional import linear

from manyhands.gpt.transformer import BLOCKS, HEADS
from manyhands.mesh import copy_to, reduce_from

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

    from manyhands.gpt.transformer import GPT

# gloo's messages and reduce-scatters, which FSDP2 and a pipeline call, take the CPU's tensors only
DEVICE = torch.device(
    os.environ["MANYHANDS_DEVICE"] if os.environ.get("MANYHANDS_BACKEND") == "nccl" else "cpu"
)
MICRO_BATCHES = 4


class Axis(NamedTuple):
    """One axis of a mesh: its group, this rank's number in it, and how many ranks it has."""

    group: dist.ProcessGroup | None
    rank: int
    size: int


# World -> its meshes. They must not end before it does: what DTensor has computed for a mesh it
# keeps for all meshes of the same shape, with the names of that one's groups.
_meshes: WeakKeyDictionary[Any, dict[tuple[tuple[str, int], ...], DeviceMesh]] = WeakKeyDictionary()


def mesh_of(way: str, axes: Mapping[str, int], rows: int) -> DeviceMesh | None:
    """The mesh of these axes over all ranks, None without axes.

    It is the same one each time as long as the world lives.
    """
    if not axes:
        return None
    if not dist.is_initialized():
        raise ValueError(f"{way!r} needs ranks: call dist.init_process_group on each of them first")
    world, given = dist.get_world_size(), math.prod(size for size in axes.values() if size > 0)
    if world % given:
        raise ValueError(f"{way!r} needs a multiple of {given} ranks, and there are {world}")
    sizes = {name: size if size > 0 else world // given for name, size in axes.items()}
    pieces = sizes.get("data", 1) * (MICRO_BATCHES if "stages" in sizes else 1)
    for number, what, parts in (
        (HEADS, "heads", sizes.get("tensor", 1)),
        (BLOCKS, "blocks", sizes.get("stages", 1)),
        (rows, "rows", pieces),
    ):
        if number % parts:
            raise ValueError(
                f"{way!r} on {world} ranks: {number} {what} do not divide into {parts} equal parts"
            )
    if DEVICE.type == "cuda":
        torch.cuda.set_device(DEVICE)  # FSDP2 asks which one is current
    meshes = _meshes.setdefault(dist.group.WORLD, {})
    key = tuple(sizes.items())
    if key not in meshes:
        meshes[key] = init_device_mesh(
            DEVICE.type, tuple(sizes.values()), mesh_dim_names=tuple(sizes)
        )
    return meshes[key]


def axis_of(mesh: DeviceMesh | None, name: str) -> Axis:
    """An axis of the mesh for this rank; one that the mesh does not have has one rank."""
    names = () if mesh is None else mesh.mesh_dim_names or ()
    if mesh is None or name not in names:
        return Axis(None, 0, 1)
    return Axis(mesh.get_group(name), mesh.get_local_rank(name), mesh.size(names.index(name)))


def my_rows(batch: torch.Tensor, mesh: DeviceMesh | None) -> torch.Tensor:
    """This rank's rows of a batch, by its place on the axis "data"."""
    data = axis_of(mesh, "data")
    return batch.chunk(data.size)[data.rank]


def plan() -> dict[str, tp.ParallelStyle]:
    """How DTensor cuts a block: q, k, v and up by columns, out and down by rows.

    What the norms give goes on as a DTensor, so that the gradients that come back from q, k and v
    are summed over the ranks once, and not three times.
    """
    shared = tp.PrepareModuleOutput(
        output_layouts=Replicate(), desired_output_layouts=Replicate(), use_local_output=False
    )
    styles: dict[str, tp.ParallelStyle] = dict.fromkeys(("norm1", "norm2"), shared)
    styles |= dict.fromkeys(("q", "k", "v", "up"), tp.ColwiseParallel())
    styles |= dict.fromkeys(("out", "down"), tp.RowwiseParallel())
    return {f"blocks.*.{layer}": style for layer, style in styles.items()}


def cut_by_heads(model: GPT, axis: Axis) -> GPT:
    """The same by hand: f behind the norms, g behind out and down.

    Nothing if the axis has one rank.
    """
    if axis.size == 1:
        return model
    block: Any
    for block in model.blocks.values():
        for norm in (block.norm1, block.norm2):
            norm.register_forward_hook(lambda norm, inputs, output: copy_to(output, axis.group))
        for layer in (block.q, block.k, block.v, block.up):
            layer.weight, layer.bias = (_part(p, axis, along=0) for p in (layer.weight, layer.bias))
        block.out, block.down = Row(block.out, axis), Row(block.down, axis)
    return model


class Row(nn.Module):
    """A linear layer of which each rank has some columns of the inputs.

    The bias is added once, after the sum.
    """

    def __init__(self, layer: nn.Linear, axis: Axis) -> None:
        super().__init__()
        self.weight, self.bias, self.group = (
            _part(layer.weight, axis, along=1),
            layer.bias,
            axis.group,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The whole output on all ranks, from this rank's columns of x; an all-reduce."""
        return reduce_from(linear(x, self.weight), self.group) + self.bias


def _part(parameter: torch.Tensor, axis: Axis, along: int) -> nn.Parameter:
    part: Any = nn.Parameter(parameter.detach().chunk(axis.size, along)[axis.rank].clone())
    part.cut_along = along
    return part


def gather_whole(parameter: torch.Tensor, mesh: DeviceMesh | None) -> torch.Tensor:
    """The whole tensor on the CPU; all ranks that hold a part of it call this."""
    # axis by axis: FSDP2 has cut what the axis "tensor" had left
    if isinstance(parameter, DTensor):
        for done in range(1, parameter.device_mesh.ndim + 1):
            parameter = parameter.redistribute(
                placements=[*[Replicate()] * done, *parameter.placements[done:]]
            )
        parameter = parameter.to_local()
    elif hasattr(parameter, "cut_along"):
        axis = axis_of(mesh, "tensor")
        parts = [torch.empty_like(parameter) for _ in range(axis.size)]
        dist.all_gather(parts, parameter.detach(), group=axis.group)
        parameter = torch.cat(parts, parameter.cut_along)
    return parameter.detach().cpu()

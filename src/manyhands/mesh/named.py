"""Tensors with named dimensions on a mesh of ranks, and their product.

The product sums over ranks where the layout asks for it.

After Shazeer et al. 2018, Mesh-TensorFlow, arXiv 1811.02084. Between calls every tensor is
complete: a sum over ranks is made where it arises. So along the axes on which a tensor is not cut
all ranks have the same numbers, in its value and in its gradient.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from manyhands.mesh.f_and_g import copy_to, reduce_from

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


class Mesh:
    """A `DeviceMesh` whose axes have names, and a layout {dimension: axis}.

    A dimension in the layout is cut along its axis.

    A dimension that is not in the layout is whole on every rank. `ValueError` for an axis that the
    mesh has not, for one without names, and on a rank that is not in the mesh.
    """

    def __init__(self, device_mesh: DeviceMesh, layout: Mapping[str, str]) -> None:
        names = device_mesh.mesh_dim_names
        if not names:
            raise ValueError(
                "the axes of the mesh have no names: give init_device_mesh mesh_dim_names=."
            )
        if device_mesh.get_coordinate() is None:
            raise ValueError(
                f"rank {dist.get_rank()} is not in this mesh: make a Mesh on its ranks only."
            )
        for dimension, axis in layout.items():
            if axis not in names:
                raise ValueError(
                    f"{dimension!r} is laid on axis {axis!r}, but the mesh has {', '.join(names)}."
                )
        self.device_mesh, self.layout = device_mesh, dict(layout)
        self.shape = dict(zip(names, device_mesh.shape, strict=True))

    def axes(self, dims: Sequence[str], of: str) -> list[str]:
        """The axes along which a tensor of these dimensions is cut.

        `ValueError` if a dimension comes twice, or if two of them lie on one axis; its text begins
        with `of`.
        """
        on: dict[str, str] = {}
        for dimension in dims:
            if list(dims).count(dimension) > 1:
                raise ValueError(f"{of}: dimension {dimension!r} appears twice in {tuple(dims)}.")
            axis = self.layout.get(dimension)
            if axis in on:
                raise ValueError(
                    f"{of}: {on[axis]!r} and {dimension!r} both lie on axis {axis!r}, so a rank "
                    "would hold blocks of the diagonal only. Lay one of them on another axis, or "
                    "on none."
                )
            if axis is not None:
                on[axis] = dimension
        return list(on)

    def group(self, axis: str) -> dist.ProcessGroup:
        """The process group of the ranks that differ from this one only along the axis."""
        return self.device_mesh.get_group(axis)

    def cut(self, tensor: torch.Tensor, dims: Iterable[str]) -> Named:
        """This rank's piece of a whole tensor, which is the same on all ranks. Sends nothing.

        It is a leaf that wants a gradient if `tensor` does. `ValueError` if the names are not as
        many as the tensor's dimensions, if two of them lie on one axis, or if a size does not
        divide by its axis.
        """
        dims = tuple(dims)
        if len(dims) != tensor.dim():
            raise ValueError(
                f"cut: {len(dims)} names {dims} for a tensor of shape {tuple(tensor.shape)}."
            )
        self.axes(dims, f"cut {dims}")
        piece = tensor.detach()
        for place, dimension in enumerate(dims):
            if dimension in self.layout:
                axis = self.layout[dimension]
                if tensor.shape[place] % self.shape[axis]:
                    raise ValueError(
                        f"cut: {dimension!r} has size {tensor.shape[place]}, which does not divide "
                        f"by the {self.shape[axis]} ranks of axis {axis!r}."
                    )
                piece = piece.chunk(self.shape[axis], place)[self.device_mesh.get_local_rank(axis)]
        piece = piece.clone(memory_format=torch.contiguous_format)
        return Named(self, piece.requires_grad_(tensor.requires_grad), dims)


class Named:
    """A rank's piece of a tensor: `value`, with the names of its dimensions, `dims`, on a mesh."""

    def __init__(self, mesh: Mesh, value: torch.Tensor, dims: Iterable[str]) -> None:
        self.mesh, self.value, self.dims = mesh, value, tuple(dims)

    @property
    def axes(self) -> list[str]:
        """The axes along which this tensor is cut."""
        return self.mesh.axes(self.dims, f"tensor {self.dims}")

    @property
    def grad(self) -> Named | None:
        """The gradient of this piece, or None."""
        return None if self.value.grad is None else Named(self.mesh, self.value.grad, self.dims)

    def map(self, function: Callable[[torch.Tensor], torch.Tensor]) -> Named:
        """`function` of each number: torch.tanh, say.

        It must treat every number by itself: of a cut dimension it sees a part only. Sends nothing.
        `ValueError` if the shape changes.
        """
        value = function(self.value)
        if value.shape != self.value.shape:
            raise ValueError(
                f"map: the shape {tuple(self.value.shape)} became {tuple(value.shape)}. map is for "
                "functions that treat each number separately. For a sum, use einsum or total."
            )
        return Named(self.mesh, value, self.dims)

    def __add__(self, other: Named) -> Named:
        """The sum with a tensor that may have some of this one's dimensions only.

        They may be in any order, as those of a bias are.

        Forward: sends nothing. Backward: an all-reduce of the gradient of `other` over the axes
        along which only this one is cut. `ValueError` if `other` has a dimension that this one has
        not.
        """
        _same_mesh(self, other, "+")
        if extra := [d for d in other.dims if d not in self.dims]:
            raise ValueError(f"+: {other.dims} has {extra[0]!r}, which {self.dims} has not.")
        value = _enter(other, self.axes)
        value = value.permute([other.dims.index(d) for d in self.dims if d in other.dims])
        shape = [self.value.shape[i] if d in other.dims else 1 for i, d in enumerate(self.dims)]
        return Named(self.mesh, self.value + value.reshape(shape), self.dims)

    def total(self) -> torch.Tensor:
        """The sum of all numbers of the tensor, a tensor without dimensions: the same on all ranks.

        Forward: an all-reduce of one number over each axis along which this is cut. Backward: sends
        nothing.
        """
        return _leave(self.mesh, self.value.sum(), self.axes)

    def whole(self) -> torch.Tensor:
        """The whole tensor on all ranks, without a gradient.

        An all-gather along each dimension that is cut.
        """
        value = self.value.detach()
        for place, dimension in enumerate(self.dims):
            axis = self.mesh.layout.get(dimension)
            if axis is not None:
                parts = [
                    torch.empty_like(value, memory_format=torch.contiguous_format)
                    for _ in range(self.mesh.shape[axis])
                ]
                dist.all_gather(parts, value.contiguous(), group=self.mesh.group(axis))
                value = torch.cat(parts, place)
        return value


def einsum(a: Named, b: Named, out: Sequence[str]) -> Named:
    """The product of two named tensors, summed over the dimensions that are not in `out`.

    Forward: the product of the pieces; then an all-reduce over the axes of dimensions that were
    summed away. Backward: an all-reduce of the gradient of `a`, and of `b`, over the axes along
    which the product is cut and it is not. All ranks of the mesh call it. `ValueError` if two
    dimensions of the product lie on one axis, also if no tensor has both of them, if `out` has a
    dimension that neither has, or for two meshes.
    """
    _same_mesh(a, b, "einsum")
    mesh, names = a.mesh, list(dict.fromkeys([*a.dims, *b.dims]))
    if missing := [d for d in out if d not in names]:
        raise ValueError(
            f"einsum: out has {missing[0]!r}, which neither {a.dims} nor {b.dims} has."
        )
    axes = mesh.axes(names, f"einsum {a.dims}, {b.dims} -> {tuple(out)}")
    out_axes = mesh.axes(out, f"einsum, out {tuple(out)}")
    letter = dict(zip(names, string.ascii_letters, strict=False))  # the first letters are enough
    terms = ["".join(letter[d] for d in dims) for dims in (a.dims, b.dims, out)]
    product = torch.einsum(f"{terms[0]},{terms[1]}->{terms[2]}", _enter(a, axes), _enter(b, axes))
    return Named(mesh, _leave(mesh, product, [axis for axis in axes if axis not in out_axes]), out)


def _enter(tensor: Named, axes: Iterable[str]) -> torch.Tensor:
    """Its value, of which ranks along `axes` make different uses.

    Their gradients are summed where it is not cut.
    """
    value = tensor.value
    for axis in axes:
        if axis not in tensor.axes:
            value = copy_to(value, tensor.mesh.group(axis))
    return value


def _leave(mesh: Mesh, value: torch.Tensor, axes: Iterable[str]) -> torch.Tensor:
    """The sum of the values along these axes."""
    for axis in axes:
        value = reduce_from(value, mesh.group(axis))
    return value


def _same_mesh(a: Named, b: Named, call: str) -> None:
    if a.mesh is not b.mesh:
        raise ValueError(
            f"{call}: the two tensors are on different Mesh objects. Cut both with the same Mesh."
        )

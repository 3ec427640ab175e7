"""Products of named tensors on a mesh of ranks, run with the sums that a table gives.

A single process computes the same, and a ledger sees the all-reduces.
"""

from __future__ import annotations

import random
import string
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.distributed as dist

from manyhands.checks.rank_tools import short_lived
from manyhands.checks.tensor_parallel import cases
from manyhands.checks.tensor_parallel.compare_ranks import compare, leaf, make_draw
from manyhands.ledger import Ledger
from manyhands.mesh import copy_to, reduce_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manyhands.checks.tensor_parallel.cases import Layout, Mesh, Names, Product, Program, Sizes

    Table = Sequence[Sequence[str]]  # the axes to sum over, (forward, for a, for b)


class Grid:
    """The ranks as a mesh {axis: ranks}, whose last axis runs fastest.

    `groups`: the existing groups, {members: group}. Making a grid is a collective.
    """

    def __init__(self, mesh: Mesh, groups: dict[tuple[int, ...], Any]) -> None:
        world = torch.arange(dist.get_world_size()).reshape(tuple(mesh.values()))
        self.mesh, self.groups = mesh, groups
        self.members: dict[str, tuple[int, ...]] = {}
        self.here: dict[str, int] = {}
        for place, axis in enumerate(mesh):
            for line in world.movedim(place, -1).flatten(0, -2).tolist():
                if tuple(line) not in groups:
                    groups[tuple(line)] = short_lived(dist.new_group(line))
                if dist.get_rank() in line:
                    self.members[axis], self.here[axis] = tuple(line), line.index(dist.get_rank())

    def group(self, axis: str) -> Any:
        """Return this rank's group along an axis."""
        return self.groups[self.members[axis]]

    def piece(self, tensor: torch.Tensor, dims: Names, layout: Layout) -> torch.Tensor:
        """Return this rank's piece of a tensor with these dimensions."""
        for place, dimension in enumerate(dims):
            if dimension in layout:
                axis = layout[dimension]
                tensor = tensor.chunk(self.mesh[axis], place)[self.here[axis]]
        return tensor

    def product(
        self, a: torch.Tensor, b: torch.Tensor, product: Product, table: Table
    ) -> torch.Tensor:
        """Return the einsum of the pieces. table: the axes to sum over, (forward, for a, for b)."""
        for axis in table[1]:
            a = copy_to(a, self.group(axis))
        for axis in table[2]:
            b = copy_to(b, self.group(axis))
        y = einsum(a, b, product)
        for axis in table[0]:
            y = reduce_from(y, self.group(axis))
        return y


def einsum(a: torch.Tensor, b: torch.Tensor, product: Product) -> torch.Tensor:
    """Return the product of two tensors, by the names of their dimensions."""
    letter = dict(zip(cases.names_of(*product), string.ascii_letters, strict=False))
    terms = ["".join(letter[d] for d in dims) for dims in product]
    return torch.einsum(f"{terms[0]},{terms[1]}->{terms[2]}", a, b)


def products(
    seed: int, mesh: Mesh, asked: Sequence[tuple[Product, Layout, Sizes]], tables: Sequence[Table]
) -> list[list[tuple[bool, list[Any]]]]:
    """Run each product with the learner's table.

    Return whether output and gradients are right, and some of their numbers.
    """
    grid, outcomes = Grid(mesh, {}), []
    for number, ((product, layout, sizes), table) in enumerate(zip(asked, tables, strict=True)):
        tensor = make_draw(random.Random(f"{seed} {number}").randrange(2**31))
        a, b, slope = (tensor(*(sizes[d] for d in dims)) for dims in product)
        whole = leaf(a), leaf(b)
        right = einsum(*whole, product)
        right.backward(slope)
        pieces = [
            leaf(grid.piece(factor, dims, layout))
            for factor, dims in zip((a, b), product[:2], strict=True)
        ]
        y = grid.product(pieces[0], pieces[1], product, table)
        y.backward(grid.piece(slope, product[2], layout))
        wanted = [
            grid.piece(value, dims, layout)
            for value, dims in zip(
                (right.detach(), *(cast("torch.Tensor", factor.grad) for factor in whole)),
                (product[2], *product[:2]),
                strict=True,
            )
        ]
        got = (y, pieces[0].grad, pieces[1].grad)
        results = [
            compare(name, value, right_one)
            for name, value, right_one in zip(("out", "a", "b"), got, wanted, strict=True)
        ]
        outcomes.append([(result["right"], result["sample"]) for result in results])
    return outcomes


def seen(asked: Sequence[Program]) -> list[list[tuple[str, int]]]:
    """Return [(axis, numbers)] of the all-reduces of each program.

    This is how the ledger of this rank sees them.
    """
    all_reduces = []
    groups: dict[Any, Any] = {}
    for programme, sizes, layout, mesh in asked:
        grid, tensor = Grid(mesh, groups), make_draw(0)
        made = [tensor(*(sizes[d] for d in b)) for _, b, _ in programme]
        weights = [
            leaf(grid.piece(w, b, layout)) for w, (_, b, _) in zip(made, programme, strict=True)
        ]
        x = grid.piece(tensor(*(sizes[d] for d in programme[0][0])), programme[0][0], layout)
        with Ledger() as ledger:
            for weight, product in zip(weights, programme, strict=True):
                x = torch.tanh(
                    grid.product(
                        x, weight, product, cases.rule(product[0], product[1], product[2], layout)
                    )
                )
            x.sum().backward()
        axis_of = {members: axis for axis, members in grid.members.items()}
        all_reduces.append([(axis_of[entry.ranks], entry.numel) for entry in ledger.entries])
    return all_reduces

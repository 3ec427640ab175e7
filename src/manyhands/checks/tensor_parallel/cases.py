"""What unit 15's checks ask for in the notebook's kernel, drawn from a seed.

These are products of named tensors, layouts on a mesh, programs and memories. A product is (a, b,
out), each of which is a tuple of names of dimensions. A layout is {dimension: axis of the mesh},
and a mesh is {axis: ranks}.
"""

from __future__ import annotations

import math
import random
from itertools import pairwise
from itertools import product as all_of
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Names = tuple[str, ...]  # of a tensor's dimensions
Product = tuple[Names, Names, Names]  # (a, b, out)
Layout = dict[str, str]  # {dimension: axis of the mesh}
Mesh = dict[str, int]  # {axis: ranks}
Sizes = dict[str, int]  # {dimension: numbers along it}
Program = tuple[list[Product], Sizes, Layout, Mesh]
Job = tuple[list[Product], Sizes, Mesh, int]  # the last one is memory_bytes

# the mesh on which the ranks compute products, before its axes get different names
MESH = {"x": 2, "y": 2}
AXES = "ring node rack tile lane pipe".split()  # names that no exercise shows
DIMENSIONS = "time token expert slot unit pixel colour word bin cell band path step".split()
MESHES = (MESH, {"x": 4, "y": 1}, {"x": 1, "y": 4})
PRODUCTS: list[Product] = [
    (tuple(a.split()), tuple(b.split()), tuple(out.split()))
    for a, b, out in (
        ("batch in", "in hidden", "batch hidden"),
        ("batch", "batch hidden", "batch"),  # hidden is in one operand alone, and summed away
        ("batch in", "hidden in", "hidden"),
        ("batch hidden", "hidden out", "out batch"),
        ("batch head place size", "batch head other size", "batch head place other"),
        ("batch head size", "head size out", "batch out"),  # two are summed away
        ("batch place in", "in hidden", "batch place hidden"),
    )
]
ITEM = 4  # bytes of a number, in exercise 7


def new_names(draw: random.Random) -> dict[str, str]:
    """Return {name: a different one} for all axes and dimensions.

    An answer must not rely on the names.
    """
    dimensions = names_of(*(dims for product in PRODUCTS for dims in product), ("depth", "middle"))
    return {
        **dict(zip("xy", draw.sample(AXES, 2), strict=True)),
        **dict(zip(dimensions, draw.sample(DIMENSIONS, len(dimensions)), strict=True)),
    }


def rename(value: Any, names: dict[str, str]) -> Any:
    """Return the same tuples, lists and dictionaries with the new names in them."""
    if isinstance(value, dict):
        return {rename(key, names): rename(item, names) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(rename(item, names) for item in value)
    return names.get(value, value) if isinstance(value, str) else value


def names_of(*tensors: Names) -> list[str]:
    """Return the names of the tensors' dimensions, each of them once."""
    return list(dict.fromkeys(d for dims in tensors for d in dims))


def axes(dims: Names, layout: Layout) -> set[str]:
    """Return the axes on which a tensor's dimensions are."""
    return {layout[d] for d in dims if d in layout}


def possible(a: Names, b: Names, layout: Layout) -> bool:
    """Whether no two dimensions of a product are on one axis."""
    on = [layout[d] for d in names_of(a, b) if d in layout]
    return len(on) == len(set(on))


def rule(a: Names, b: Names, out: Names, layout: Layout) -> tuple[list[str], ...]:
    """Return the axes to sum over, each in order.

    They are (for the product in forward, for a's gradient, for b's gradient).
    """
    on_a, on_b = axes(a, layout), axes(b, layout)
    return tuple(
        sorted(axis_set)
        for axis_set in ((on_a | on_b) - axes(out, layout), on_b - on_a, on_a - on_b)
    )


def layouts(names: Sequence[str], mesh: Mesh) -> Iterator[Layout]:
    """All ways to put each of these dimensions on an axis or on none."""
    for choice in all_of((None, *mesh), repeat=len(names)):
        yield {name: axis for name, axis in zip(names, choice, strict=True) if axis}


def products(seed: int) -> tuple[Mesh, list[tuple[Product, Layout, Sizes]]]:
    """(mesh, [(product, layout, sizes)]) for exercise 5, with all layouts that are possible.

    Some name a dimension that the product does not have.
    """
    draw, questions = random.Random(f"products {seed}"), []
    for a, b, out in PRODUCTS:
        names = names_of(a, b)
        for layout in [layout for layout in layouts(names, MESH) if possible(a, b, layout)]:
            free = sorted(MESH.keys() - layout.values())
            others = {"depth": draw.choice(free)} if free and draw.random() < 0.5 else {}
            questions.append(
                (
                    (a, b, out),
                    {**layout, **others},
                    {name: 2 * draw.randint(1, 3) for name in names},
                )
            )
    draw.shuffle(questions)
    return rename((MESH, questions), new_names(draw))


def refusals(seed: int) -> list[tuple[Product, Layout, bool]]:
    """[(product, layout, whether it is possible)] for exercise 5."""
    draw, questions = random.Random(f"refusals {seed}"), []
    linear, _, lone = PRODUCTS[:3]
    for product, layout in (
        (linear, {"batch": 0, "in": 0}),
        (linear, {"batch": 0, "hidden": 0}),
        (lone, {"batch": 0, "hidden": 0}),
        (linear, {"in": 0, "hidden": 0}),
        (linear, {"batch": 0, "in": 1, "out": 0}),
        (linear, {"place": 0, "size": 0}),
        (linear, {"hidden": 0, "in": 1}),
    ):
        names = draw.sample("xy", 2)
        named = {dimension: names[axis] for dimension, axis in layout.items()}
        asked = product, named, possible(product[0], product[1], named)
        questions.append(rename(asked, new_names(draw)))
    draw.shuffle(questions)
    return questions


# --- 6 and 7 --------------------------------------------------------------------------------------


def program(depth: int | str) -> list[Product]:
    """`depth` layers after each other, as [(a, b, out), ...].

    The first a is data, and every other a is the output of the layer before.
    """
    if depth == "heads":  # with tensors of three dimensions, and two that are summed away
        first, second = ("in", "head", "size"), ("head", "size", "out")
        return [
            (("batch", "in"), first, ("batch", "head", "size")),
            (("batch", "head", "size"), second, ("batch", "out")),
        ]
    widths: Names = ("in", "hidden", "out") if depth == 2 else ("in", "hidden", "middle", "out")
    return [(("batch", a), (a, b), ("batch", b)) for a, b in pairwise(widths)]


def numbers(dims: Names, sizes: Sizes, layout: Layout, mesh: Mesh) -> int:
    """How many numbers a rank's piece of a tensor has."""
    return math.prod(sizes[d] // mesh[layout[d]] if d in layout else sizes[d] for d in dims)


def reduced(products: Sequence[Product], layout: Layout) -> Iterator[tuple[str, str, Names]]:
    """Yield ("forward" or "backward", axis, tensor) of a program's all-reduces.

    Each tensor is given as its dimensions' names.
    """
    for number, (a, b, out) in enumerate(products):
        forward, for_a, for_b = rule(a, b, out, layout)
        yield from (("forward", axis, out) for axis in forward)
        yield from (("backward", axis, a) for axis in for_a if number)
        yield from (("backward", axis, b) for axis in for_b)


def runs_well(products: Sequence[Product], sizes: Sizes, layout: Layout, mesh: Mesh) -> bool:
    """Whether a layout is possible for all products, and every size that is cut can be divided."""
    return all(possible(a, b, layout) for a, b, _ in products) and not any(
        size % mesh[layout[d]] for d, size in sizes.items() if d in layout
    )


def programs(seed: int) -> list[Program]:
    """[(products, sizes, layout, mesh)] for exercise 6.

    In one of the programs of each depth, every dimension is cut over several ranks, so that each
    kind of sum occurs. Some layouts would sum over an axis with one rank.
    """
    draw, depths = random.Random(f"programs {seed}"), (2, 3)
    wanted = {(depth, name) for depth in depths for name in dimensions(program(depth))}
    while True:
        questions = [
            _program(draw, mesh, program(depth)) for mesh, depth in all_of((*MESHES, MESH), depths)
        ]
        cut = {
            (len(products), name)
            for products, _, layout, mesh in questions
            for name in layout
            if mesh[layout[name]] > 1
        }
        if cut == wanted and any(
            mesh[axis] == 1
            for products, _, layout, mesh in questions
            for _, axis, _ in reduced(products, layout)
        ):
            questions += [
                _program(draw, MESH, program("heads"), way)
                for way in ({"head": "x", "size": "y"}, {"batch": "y", "head": "x"})
            ]
            return [rename(question, new_names(draw)) for question in questions]


def dimensions(products: Iterable[Product]) -> list[str]:
    """Return the names of all dimensions of a program."""
    return names_of(*(dims for product in products for dims in product))


def _program(
    draw: random.Random, mesh: Mesh, products: list[Product], way: Layout | None = None
) -> Program:
    names = dimensions(products)
    sizes = {
        name: 4 * size
        for name, size in zip(names, draw.sample(range(1, 8), len(names)), strict=True)
    }
    ways = [
        layout
        for layout in layouts(names, mesh)
        if set(layout.values()) == set(mesh) and runs_well(products, sizes, layout, mesh)
    ]
    return products, sizes, way or draw.choice(ways), mesh


def sent_bytes(
    products: Sequence[Product],
    sizes: Sizes,
    layout: Layout,
    mesh: Mesh,
    ways: Sequence[str] = ("forward", "backward"),
    each: Callable[[int], float] | None = None,
) -> float:
    """The bytes that a rank sends in a step.

    `each`: what an all-reduce over p ranks sends for each byte, by default as a ring does.
    """
    from manyhands import simulate

    each = each or (lambda p: simulate.sent_bytes("ring", p, 1))
    return sum(
        ITEM * numbers(dims, sizes, layout, mesh) * each(mesh[axis])
        for way, axis, dims in reduced(products, layout)
        if way in ways
    )


def held_bytes(
    products: Sequence[Product],
    sizes: Sizes,
    layout: Layout,
    mesh: Mesh,
    kept: Sequence[Names] | None = None,
    copies: int = 4,
) -> int:
    """Return the bytes that a rank holds.

    They are `copies` of the weights, because of gradients and Adam's two numbers, and `kept`, which
    is the data and each product's output by default.
    """
    kept = [products[0][0], *(out for _, _, out in products)] if kept is None else kept
    weights = sum(numbers(b, sizes, layout, mesh) for _, b, _ in products)
    return ITEM * (copies * weights + sum(numbers(dims, sizes, layout, mesh) for dims in kept))


TRAPS = (
    "no activations",
    "no data",
    "no last output",
    "three copies",
    "no ring",
    "to each other",
    "forward only",
    "odd batch",
    "odd weight",
    "axis once",
    "every axis",
    "one copy",
    "numbers",
    "exactly",
    "just over",
    "four dimensions",
)
# whose program has tensors of three dimensions
HEADS = "three copies", "exactly", "four dimensions"


def jobs(seed: int) -> list[Job]:
    """[(products, sizes, mesh, memory_bytes)] of exercise 7.

    In each of them, one of the traps leads to a wrong answer.
    """
    draw = random.Random(f"jobs {seed}")
    return [rename(_job(draw, trap), new_names(draw)) for trap in TRAPS]


def _job(draw: random.Random, trap: str) -> Job:
    while True:
        products, mesh = (
            program("heads" if trap in HEADS else 2),
            {"x": 2, "y": draw.choice((2, 4, 8))},
        )
        sizes = {name: 8 * draw.randint(1, 40) for name in dimensions(products)}
        odd = {"odd batch": ["batch"], "odd weight": ["hidden", "out"]}.get(trap)
        if odd:
            sizes[draw.choice(odd)] += 1
        job = (
            products,
            sizes,
            mesh,
            int(held_bytes(products, sizes, {}, mesh) * draw.uniform(0.3, 0.8)),
        )
        # the cheapest needs exactly the memory, or one byte more
        if trap in ("exactly", "just over"):
            _, way = min(seen_by(None, *job), key=lambda priced: priced[0], default=(0, {}))
            job = *job[:3], held_bytes(products, sizes, way, mesh) - (trap == "just over")
        right = {str(way): price for price, way in seen_by(None, *job)}
        best, taken = (
            min((price for price, _ in seen_by(which, *job)), default=None)
            for which in (None, trap)
        )
        if (
            best
            and taken is not None
            and all(
                str(way) not in right or right[str(way)] > 1.03 * best
                for price, way in seen_by(trap, *job)
                if price == taken
            )
        ):
            return job


def seen_by(
    trap: str | None, products: Sequence[Product], sizes: Sizes, mesh: Mesh, memory: int
) -> list[tuple[float, Layout]]:
    """Return [(bytes sent, layout)] of all layouts that seem to fit if you fall into this trap.

    If `trap` is None, it is all layouts that do fit.
    """
    data, *outputs = products[0][0], *(out for _, _, out in products)
    keeps: dict[str | None, Sequence[Names]] = {
        "no activations": (),
        "no data": outputs,
        "no last output": [data, *outputs[:-1]],
    }
    activations = keeps.get(trap)
    sends: dict[str | None, dict[str, Any]] = {
        "no ring": {"each": lambda p: 1},
        "to each other": {"each": lambda p: p - 1},
        "forward only": {"ways": ("forward",)},
    }
    send = sends.get(trap, {})
    memories: dict[str | None, int] = {
        "numbers": 4 * memory,
        "exactly": memory - 1,
        "just over": memory + 1,
    }
    memory = memories.get(trap, memory)
    copies = 3 if trap == "three copies" else 1 if trap == "one copy" else 4
    priced = []
    for way in layouts(list(sizes)[: 4 if trap == "four dimensions" else None], mesh):
        divides = runs_well(products, sizes, way, mesh) or trap in ("odd batch", "odd weight")
        used = (trap == "axis once" and len(set(way.values())) < len(way)) or (
            trap == "every axis" and set(way.values()) != set(mesh)
        )
        if used or not divides or not all(possible(a, b, way) for a, b, _ in products):
            continue
        if held_bytes(products, sizes, way, mesh, activations, copies) <= memory:
            priced.append((sent_bytes(products, sizes, way, mesh, **send), way))
    return priced

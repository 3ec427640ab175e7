"""The autograd graphs of several ranks as one picture.

It shows what backward reaches on each rank, and the messages between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from manyhands.plots import GREY, INK, figure, ink_on, rank_colour, styled, svg

if TYPE_CHECKING:
    import torch
    from matplotlib.axes import Axes

    from manyhands.plots import Svg, Words

WORDS = {
    "rank": "rank {rank}",
    "step": "steps of the forward pass (backward goes along the arrows)",
}
# height of a rank's lane; half the width and half the height of a node
LANE, BOX = 1.0, (0.36, 0.17)


Graph = dict[str, Any]  # what `walk` gives
Graphs = Mapping[int, Graph]  # by rank


def walk(*outputs: torch.Tensor, names: Mapping[str, torch.Tensor] | None = None) -> Graph:
    """This rank's autograd graph as plain numbers and words; runs on the rank.

    `outputs` are tensors: the first is the one on which backward is called; from the others, parts
    are found that it may not reach. `names` maps a name to a leaf tensor. A node that sends or
    receives has the attributes `peer` and `tag`, as an autograd Function has that keeps them in its
    `ctx`. Returns `{"nodes": [...], "edges": [[node, input], ...]}`; a node is `{"label", "call":
    "send" | "recv" | None, "peer", "tag", "reached"}`, and an edge leads from a node to one of its
    inputs.
    """
    leaves = {id(tensor): name for name, tensor in (names or {}).items()}
    places: dict[Any, int] = {}
    nodes: list[dict[str, Any]] = []
    edges: list[list[int]] = []
    for number, output in enumerate(outputs):
        todo = [output.grad_fn]
        while todo:
            function = todo.pop(0)
            if function is None or function in places:
                continue
            places[function] = len(nodes)
            nodes.append({**_describe(function, leaves), "reached": number == 0})
            todo += [following for following, _ in function.next_functions]
    for function, place in places.items():
        edges += [
            [place, places[following]]
            for following, _ in function.next_functions
            if following is not None
        ]
    return {"nodes": nodes, "edges": edges}


def _describe(function: Any, leaves: Mapping[int, str]) -> dict[str, Any]:
    label = function.name().split("::")[-1].split("Backward")[0].lower()
    call = label if label in ("send", "recv") else None
    if hasattr(function, "variable"):
        label = leaves.get(id(function.variable), "leaf")
    return {
        "label": label,
        "call": call,
        "peer": getattr(function, "peer", None),
        "tag": getattr(function, "tag", None),
    }


def messages(ranks: Graphs) -> list[tuple[int, int, int, int]]:
    """The messages between the graphs: [(sender, its node, receiver, its node)].

    The graphs are `{rank: walk(...)}`. The messages are in order of the senders.
    """
    pairs: list[tuple[int, int, int, int]] = []
    for sender, graph in sorted(ranks.items()):
        for i, node in enumerate(graph["nodes"]):
            if node["call"] == "send":
                pairs += [
                    (sender, i, node["peer"], j)
                    for j, other in enumerate(ranks[node["peer"]]["nodes"])
                    if other["call"] == "recv"
                    and (other["peer"], other["tag"]) == (sender, node["tag"])
                ]
    return pairs


def table(graphs: Mapping[str, Graphs]) -> str:
    """The picture as text: a block for each graph, with a line for each rank.

    A line has the nodes that backward reaches and those that it does not; lost gradients follow.
    """
    lines = []
    for title, ranks in graphs.items():
        lines.append(title)
        for rank, graph in sorted(ranks.items()):
            reached = [node["label"] for node in graph["nodes"] if node["reached"]]
            missed = [node["label"] for node in graph["nodes"] if not node["reached"]]
            lines.append(
                f"  rank {rank}: backward reaches {', '.join(reached)}"
                + (f"; never {', '.join(missed)}" if missed else "")
            )
        lines += [
            f"  rank {receiver} sends a gradient to rank {sender}, which never receives it"
            for sender, i, receiver, j in messages(ranks)
            if _lost(ranks, sender, i, receiver, j)
        ]
    return "\n".join(lines)


def _lost(ranks: Graphs, sender: int, i: int, receiver: int, j: int) -> bool:
    return ranks[receiver]["nodes"][j]["reached"] and not ranks[sender]["nodes"][i]["reached"]


def levels(ranks: Graphs) -> dict[tuple[int, int], int]:
    """{(rank, node): step of the forward pass}.

    Every node comes after its inputs, and a leaf just before what uses it.
    """
    inputs = {
        (rank, i): [(rank, b) for a, b in graph["edges"] if a == i]
        for rank, graph in ranks.items()
        for i in range(len(graph["nodes"]))
    }
    for sender, i, receiver, j in messages(ranks):
        inputs[receiver, j].append((sender, i))
    level_of: dict[tuple[int, int], int] = {}

    def level(node: tuple[int, int]) -> int:
        if node not in level_of:
            level_of[node] = 1 + max((level(other) for other in inputs[node]), default=-1)
        return level_of[node]

    for node in inputs:
        level(node)
    for node, before in inputs.items():
        if not before:
            level_of[node] = (
                min((level_of[user] for user, used in inputs.items() if node in used), default=1)
                - 1
            )
    return level_of


@styled
def graph(
    graphs: Mapping[str, Graphs], words: Words = WORDS, title: str = "autograd graphs of the ranks"
) -> Svg:
    """Draw one panel for each entry of `graphs`, with a lane for each rank.

    `graphs` is `{name: {rank: walk(...)}}`. The forward pass goes to the right.

    Full boxes are what backward reaches. A thick arrow is a gradient that travels to another rank;
    if it is dotted and ends in a cross, nobody receives it. A dashed arrow is a delegate edge: from
    a recv to the send that it was given. Returns an `Svg`.
    """
    fig, axes = figure(
        rows=len(graphs),
        height=0.35 + sum(0.3 + 0.75 * len(ranks) for ranks in graphs.values()),
        squeeze=False,
        sharex=True,
    )
    for ax, (name, ranks) in zip(axes[:, 0], graphs.items(), strict=True):
        places = _places(ranks)
        for (rank, i), (x, y) in places.items():
            _box(ax, x, y, rank, ranks[rank]["nodes"][i])
        for rank, rank_graph in ranks.items():
            for a, b in rank_graph["edges"]:
                delegate = (
                    rank_graph["nodes"][a]["call"] == "recv"
                    and rank_graph["nodes"][b]["call"] == "send"
                )
                _arrow(
                    ax,
                    places[rank, a],
                    places[rank, b],
                    INK if rank_graph["nodes"][a]["reached"] else GREY,
                    "--" if delegate else "-",
                )
        for sender, i, receiver, j in messages(ranks):
            _message(
                ax,
                places[receiver, j],
                places[sender, i],
                rank_colour(receiver),
                _lost(ranks, sender, i, receiver, j),
            )
        lanes = sorted(ranks)
        ax.set(
            title=name,
            yticks=[LANE * n for n in range(len(lanes))],
            yticklabels=[words["rank"].format(rank=rank) for rank in lanes],
            ylim=(LANE * (len(lanes) - 0.5), -0.5 * LANE),
            xlim=(-0.5, max(x for x, _ in places.values()) + 0.5),
            xticks=[],
        )
        ax.tick_params(axis="y", length=0)
    axes[-1, 0].set_xlabel(words["step"])
    return svg(fig, title)


def _places(ranks: Graphs) -> dict[tuple[int, int], tuple[float, float]]:
    """{(rank, node): (x, y)}.

    Nodes of one rank that share a step are below each other, what talks to a rank nearest to it.
    """
    at, lanes = levels(ranks), sorted(ranks)
    places: dict[tuple[int, int], tuple[float, float]] = {}
    for lane, rank in enumerate(lanes):

        def towards(i: int, rank: int = rank) -> int:
            peer = ranks[rank]["nodes"][i]["peer"]
            return 0 if peer is None else (peer > rank) - (peer < rank)

        by_level: dict[int, list[int]] = {}
        for i in sorted(range(len(ranks[rank]["nodes"])), key=towards):
            by_level.setdefault(at[rank, i], []).append(i)
        for x, together in by_level.items():
            for place, i in enumerate(together):
                places[rank, i] = (x, LANE * lane + 0.42 * (place - (len(together) - 1) / 2))
    return places


def _box(ax: Axes, x: float, y: float, rank: int, node: Mapping[str, Any]) -> None:
    from matplotlib.patches import FancyBboxPatch

    half_width, half_height = BOX
    reached = node["reached"]
    ax.add_patch(
        FancyBboxPatch(
            (x - half_width, y - half_height),
            2 * half_width,
            2 * half_height,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor=rank_colour(rank) if reached else "white",
            edgecolor=INK if reached else GREY,
            linestyle="-" if reached else ":",
            linewidth=0.8,
        )
    )
    ax.text(
        x,
        y,
        node["label"],
        ha="center",
        va="center",
        fontsize=8.5,
        color=ink_on(rank) if reached else GREY,
    )


def _arrow(
    ax: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    colour: str,
    style: str,
    width: float = 1.0,
) -> None:
    """Draw an arrow from the later node to the earlier one, the way that backward takes.

    It goes from the left side of the one to the right side of the other.
    """
    half_width, _ = BOX
    ax.annotate(
        "",
        (end[0] + half_width, end[1]),
        (start[0] - half_width, start[1]),
        arrowprops={
            "arrowstyle": "-|>",
            "color": colour,
            "linewidth": width,
            "linestyle": style,
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )


def _message(
    ax: Axes, start: tuple[float, float], end: tuple[float, float], colour: str, lost: bool
) -> None:
    """Draw an arrow from the receiver of a message to its sender, which the gradient goes back to.

    It goes between the facing sides of the two boxes.
    """
    side = BOX[1] if end[1] > start[1] else -BOX[1]
    ax.annotate(
        "",
        (end[0], end[1] - side),
        (start[0], start[1] + side),
        arrowprops={
            "arrowstyle": "-|>",
            "color": colour,
            "linewidth": 2,
            "linestyle": ":" if lost else "-",
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )
    if lost:
        ax.plot(
            (start[0] + end[0]) / 2,
            (start[1] + end[1]) / 2,
            "x",
            color=INK,
            markersize=11,
            markeredgewidth=2.5,
        )

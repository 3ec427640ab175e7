"""What the ranks have seen, compared: rows, weights, and the gradients of each step as vectors."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from manyhands.clinic.dtensor_parts import groups_with_same_part, join_parts
from manyhands.clinic.flat_parts import assemble
from manyhands.clinic.loss_factors import loss_scale, scale_of_each, shares
from manyhands.clinic.one_process_run import data_parallel_ranks
from manyhands.clinic.tolerances import COARSE_TOLERANCE, GRADIENT_TOLERANCE, LOSS_FACTOR_TOLERANCE

if TYPE_CHECKING:
    import torch

    from manyhands.clinic.records import Clip, Given, Parts, StepKey
    from manyhands.clinic.visit import Visit


@dataclass
class Step:
    """One step.

    Vectors hold all parameters of the step's optimiser, one behind the other, in the order of
    `names`.
    """

    names: list[str]
    sizes: list[int]
    given: Sequence[torch.Tensor | None]  # by rank: what the optimiser got
    # the gradient of one process with the rows of all ranks; None where it is not known
    right: torch.Tensor | None = None
    # what the run in one process has: the mean of the ranks' gradients, weighted by their rows
    raw: torch.Tensor | None = None
    scales: list[float] | None = None  # by rank, what that is; None where it is not known
    # by rank, before the ranks' gradients are averaged
    local: list[torch.Tensor] = field(default_factory=list)
    plain: torch.Tensor | None = None  # the mean over the ranks, whatever their shares
    shares: list[float] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)  # by rank, digests
    clips: list[list[Clip]] = field(default_factory=list)  # by rank
    finite: bool = True  # whether no gradient of this step holds NaN or infinity
    parts: int = 1  # backward calls that add up on each rank; 1 where that is not so
    # whether none of them was divided; None where the loss is not known
    undivided: bool | None = False
    missing: bool = False  # whether no optimiser got a gradient
    # for each number, the rank whose optimiser holds it; None where all hold the same
    holders: torch.Tensor | None = None
    # "whole": each rank's loss is that of the rows of all, by an all_gather that has no backward;
    gathered: str = ""
    # "parts": a loss looks at rows of other ranks, and what one process has for a gradient is not
    # known
    # whether `scales` come from products (0.5 * loss), and not from quotients
    weighted: bool = False


if TYPE_CHECKING:

    class Comparable(Step):
        """A step that `judge._can_compare` has let through."""

        given: list[torch.Tensor]
        right: torch.Tensor


class Evidence:
    """What all ranks of a visit have recorded that have completed at least one step.

    Or what `members` have, some of the ranks, with the parameters of these `names` only. Ranks are
    numbered from 0 here: `members` has their numbers in the world.
    """

    def __init__(
        self,
        visit: Visit,
        members: Sequence[int] | None = None,
        names: Collection[str] | None = None,
    ) -> None:
        self.world, self.members, self.names = (
            visit.ranks,
            list(members or range(visit.ranks)),
            names,
        )
        self.ranks = len(self.members)
        self.seen = [visit.seen[rank] for rank in self.members]
        self.one_process = visit.one_process if members is None else None
        self.cost = {
            place: visit.cost[rank] for place, rank in enumerate(self.members) if rank in visit.cost
        }
        self.first = self.seen[0]
        self.dtype = next(
            (str(part.dtype) for part in self.first["start"].values()), "torch.float32"
        )
        self.tolerance = GRADIENT_TOLERANCE.get(self.dtype, COARSE_TOLERANCE)
        self.sharded = self.first["sharded"]
        # the ranks whose rows are parts of the batch
        self.batch_ranks = data_parallel_ranks(self.seen)
        # a gradient that can only be compared with that of the copy has the rounding of the type it
        # is computed in
        autocast = any(
            call["autocast"]
            for record in self.seen
            for step in record["steps"]
            for call in step["calls"]
        )
        self.coarse = COARSE_TOLERANCE if self.first["low"] or autocast else self.tolerance
        if self.sharded:
            self.tolerance = self.coarse
        count = min(len(record["steps"]) for record in self.seen)
        self.steps = [self._step(number) for number in range(count)]
        # the steps before the first one that leaves numbers that are not finite: no other can be
        # compared
        self.count = next(
            (number for number in range(count) if self.find_not_finite(number)), count
        )

    def of(self, number: int, what: StepKey) -> list[Any]:
        """By rank: what was noted of this step."""
        return [record["steps"][number][what] for record in self.seen]

    def _step(self, number: int) -> Step:
        given = self.of(number, "given")
        # of a parameter that another rank's optimiser has, that one's gradient: an optimiser whose
        # state is sharded
        given = [
            {**{name: value for other in given for name, value in other.items()}, **part}
            for part in given
        ]
        holders: dict[str, torch.Tensor] | None = None
        if any(pieces := self.of(number, "pieces")):
            whole, holders = assemble(
                pieces, {name: part.numel() for name, part in self.first["start"].items()}
            )
            given = [whole] * self.ranks
        names = [
            name
            for name in dict.fromkeys(name for part in given for name in part)
            if any(part.get(name) is not None for part in given)
            and (self.names is None or name in self.names)
        ]
        missing = not names and self.names is None  # no parameter has a gradient
        if missing:
            given = [
                {
                    name: rank["start"][name].new_zeros(rank["start"][name].shape)
                    for name in given[0]
                }
                for rank in self.seen
            ]
            names = list(given[0])
        sizes = [
            next(part[name].numel() for part in given if part.get(name) is not None)
            for name in names
        ]
        step = Step(
            names,
            sizes,
            [],
            missing=missing,
            clips=self.of(number, "clips"),
            rows=[
                [row for call in calls for row in call["rows"]]
                for calls in self.of(number, "calls")
            ],
        )
        if self.sharded:
            of_all = self._whole(given, names, number)
            step.sizes = [
                math.prod(self.sharded[name]["shape"]) if name in self.sharded else size
                for name, size in zip(names, sizes, strict=True)
            ]
            step.given, step.holders = [of_all] * self.ranks, self._holders(given, names, number)
            step.raw = step.right = None if of_all is None else self._in_one_process(names, number)
            step.scales = self._scales(number)
            if step.raw is not None and step.scales:
                step.right = step.raw / step.scales[0] if len(set(step.scales)) == 1 else None
            return self._checked(step, number)
        step.given = [join_vector(part, names, sizes) for part in given]
        step.holders = join_vector(holders, names, sizes) if holders else None
        step.local = [join_vector(part, names, sizes) for part in self.of(number, "local")]
        step.shares = shares(self.of(number, "backwards"), step.rows)
        step.right = right = _sum(
            share * part for share, part in zip(step.shares, step.local, strict=True)
        )
        by_rows = shares([[]] * self.ranks, step.rows)
        step.raw = _sum(share * part for share, part in zip(by_rows, step.local, strict=True))
        step.scales = self._scales(number)
        if step.scales:
            step.right = right = _sum(
                share * part / scale
                for share, part, scale in zip(step.shares, step.local, step.scales, strict=True)
            )
        step.weighted = all(
            entry.get("weighted") for of_rank in self.of(number, "backwards") for entry in of_rank
        )
        step.plain = _sum(step.local) / self.ranks
        step.gathered = self._gathered(number, step)
        if step.gathered == "whole":
            step.right = right * self.ranks
        return self._checked(step, number)

    def _checked(self, step: Step, number: int) -> Step:
        step.finite = all(map(is_finite, [*step.given, *step.local]))
        if step.right is not None and not is_finite(step.right):
            step.right = None
        backwards = self.of(number, "backwards")
        counts = {
            len(of_rank) if len(calls) >= len(of_rank) else 1
            for of_rank, calls in zip(backwards, self.of(number, "calls"), strict=True)
        }
        if len(counts) == 1 and max(counts) > 1:
            known = all(loss_scale(of_rank, self.ranks) for of_rank in backwards)
            step.parts, step.undivided = (
                counts.pop(),
                (
                    None
                    if not known
                    else all(scale_of_each(of_rank, self.ranks) == 1.0 for of_rank in backwards)
                ),
            )
        return step

    def find_not_finite(self, number: int) -> tuple[str, dict[int, torch.Tensor]] | None:
        """Return what holds NaN or infinity in a step, and on which ranks; or None.

        ("local" | "given" | "weights", {rank: tensor}). A GradScaler leaves such gradients out, so
        only weights count then.
        """
        step = self.steps[number]
        weights = [list(weights.values()) for weights in self.of(number, "weights")]
        looked_at: dict[str, list[list[Any]]] = {"weights": weights}
        if not self.first["scaled"]:
            looked_at = {
                "local": [[entry] for entry in step.local],
                "given": [[entry] for entry in step.given],
                **looked_at,
            }
        for what, by_rank in looked_at.items():
            broken = {
                rank: next(part for part in parts if part is not None and not is_finite(part))
                for rank, parts in enumerate(by_rank)
                if not all(map(is_finite, parts))
            }
            if broken:
                return what, broken
        return None

    def _gathered(self, number: int, step: Step) -> str:
        """Say whether the model's outputs are gathered from other ranks before backward.

        The answer is one of those of `Step.gathered`.
        """
        messages = self.of(number, "messages")[0]
        # rows of numbers: a loss for the log is gathered as well
        gathers = [
            message
            for message in messages
            if message["call"].startswith("allgather")
            and message["follows"]
            and message["phase"] in ("forward", "between")
            and list(message["ranks"]) == self.members
            and len(message["shape"] or ()) > 1
        ]
        values = [[entry["value"] for entry in of_rank] for of_rank in self.of(number, "backwards")]
        if not gathers or any(entry is None for of_rank in values for entry in of_rank):
            return ""
        sizes = {
            size
            for message in gathers
            for size in (message["numel"], message["numel"] * self.ranks)
        }
        back = any(
            message["phase"] == "backward" and message["numel"] in sizes and not message["native"]
            for message in messages
        )
        same = all(
            len(of_rank) == len(values[0])
            and all(
                abs(a - b) <= LOSS_FACTOR_TOLERANCE * abs(b)
                for a, b in zip(of_rank, values[0], strict=True)
            )
            for of_rank in values[1:]
        )
        return (
            ""
            if back
            else "whole"
            if same and len(set(map(tuple, step.rows))) == self.ranks
            else "parts"
        )

    def _scales(self, number: int) -> list[float] | None:
        scales = [loss_scale(of_rank, self.ranks) for of_rank in self.of(number, "backwards")]
        known = [scale for scale in scales if scale]
        return known if len(known) == len(scales) else None

    def _holders(self, given: list[Given], names: list[str], number: int) -> torch.Tensor | None:
        numbered = [
            {
                name: part.new_full(part.shape, rank)
                for name, part in of_rank.items()
                if part is not None
            }
            for rank, of_rank in enumerate(given)
        ]
        return self._whole(numbered, names, number)

    def _whole(
        self, given: Sequence[Mapping[str, torch.Tensor | None]], names: list[str], number: int
    ) -> torch.Tensor | None:
        import torch

        cuts = self.of(number, "cuts")[0]
        parts: list[torch.Tensor | None] = []
        for name in names:
            shard = self.sharded.get(name)
            shard = shard and {**shard, "placements": cuts.get(name, shard["placements"])}
            held = {rank: part.get(name) for rank, part in zip(self.members, given, strict=True)}
            parts.append(
                join_parts({rank: part for rank, part in held.items() if part is not None}, shard)
            )
        known = [part.reshape(-1).double() for part in parts if part is not None]
        return torch.cat(known) if len(known) == len(parts) else None

    def _in_one_process(self, names: list[str], number: int) -> torch.Tensor | None:
        import torch

        gradient = self.one_process_gradient(number)
        if gradient is None or any(name not in gradient for name in names):
            return None
        return torch.cat([gradient[name].double() for name in names])

    def one_process_gradient(self, number: int = 0) -> Parts | None:
        """Return a step's gradient of the run in one process, {name: numbers}.

        None where it is no measure of anything.
        """
        run = self.one_process
        if (
            not run
            or "not" in run
            or not all(run[key] <= self.coarse for key in ("far", "unfaithful"))
        ):
            return None
        return run["gradients"][number] if number < len(run["gradients"]) else None

    def find_different_starts(self) -> list[str]:
        """Return the names of parameters that do not begin the same on all ranks.

        Only ranks that hold the same part of a parameter are compared.
        """
        if self.sharded and self.ranks < self.world:
            return []
        starts = [record["start"] for record in self.seen]
        return [
            name
            for name in self.first["start"]
            if self.names is None or name in self.names
            if any(
                relative_distance(starts[rank].get(name), starts[group[0]].get(name))
                > self.tolerance
                for group in groups_with_same_part(
                    [record["sharded"].get(name) for record in self.seen]
                )
                for rank in group[1:]
            )
        ]

    def weight_distances(self, number: int) -> list[float]:
        """By rank: how far its weights after a step are from rank 0's, in parts of their length."""
        if self.sharded:
            return [0.0] * self.ranks
        weights = [self.weights_after(rank, number) for rank in range(self.ranks)]
        return [
            max(
                (
                    relative_distance(part[name], own)
                    for name, own in weights[0].items()
                    if name in part and (self.names is None or name in self.names)
                ),
                default=0.0,
            )
            for part in weights
        ]

    def weights_after(self, rank: int, number: int) -> Parts:
        """Return {name: numbers}, a rank's weights after a step.

        They are those as the next step begins, where that is known, since a script may send them
        after its optimiser's step.
        """
        steps = self.seen[rank]["steps"]
        return {
            **steps[number]["weights"],
            **(steps[number + 1]["begin"] if number + 1 < self.count else {}),
        }


def _sum(parts: Iterable[torch.Tensor]) -> torch.Tensor:
    return cast("torch.Tensor", sum(parts))  # of one part or more


def join_vector(
    parts: Mapping[str, torch.Tensor | None], names: Sequence[str], sizes: Sequence[int]
) -> torch.Tensor:
    """Join the `parts` of these names to one vector of float64; a missing part is zeros."""
    import torch

    held = [parts.get(name) for name in names]
    return torch.cat(
        [torch.zeros(0, dtype=torch.float64)]
        + [
            torch.zeros(size, dtype=torch.float64) if part is None else part.double()
            for part, size in zip(held, sizes, strict=True)
        ]
    )


def is_finite(tensor: torch.Tensor | None) -> bool:
    """Whether it holds neither NaN nor infinity; what is not known counts as finite."""
    return tensor is None or bool(tensor.isfinite().all())


def relative_distance(a: torch.Tensor | None, b: torch.Tensor | None) -> float:
    """The length of the difference, in parts of b's length; inf where they cannot be compared.

    What is not finite is the same where both have it at the same places.
    """
    if a is None or b is None or a.shape != b.shape:
        return float("inf")
    a, b = a.double(), b.double()
    if not (is_finite(a) and is_finite(b)):
        both = a.isfinite() & b.isfinite()
        return (
            relative_distance(a[both], b[both])
            if a.isfinite().equal(b.isfinite())
            else float("inf")
        )
    return (
        float((a - b).norm() / b.norm().clamp(min=1e-30)) if b.numel() and not a.equal(b) else 0.0
    )


def fit(given: torch.Tensor, wanted: torch.Tensor) -> tuple[float, float]:
    """Return (factor, rest), where `given` is factor * `wanted` up to a rest.

    The rest is in parts of the length of `given`.
    """
    length = float(wanted @ wanted)
    if not length or not float(given @ given):
        return 0.0, float("inf")
    factor = float(given @ wanted) / length
    return factor, float((given - factor * wanted).norm() / given.norm())


def find_unequal_buffers(evidence: Evidence) -> tuple[list[str], int | None]:
    """Find the buffers that differ as forward begins, in every step from the second on.

    Returns (their names, the number of the first step).
    """
    names: set[str] | None = None
    first = None
    for number in range(1, evidence.count):
        buffers = evidence.of(number, "buffers")
        if buffers[0]:
            differ = {
                name
                for name in buffers[0]
                if len({str(of_rank.get(name)) for of_rank in buffers}) > 1
            }
            names, first = (differ, number + 1) if names is None else (names & differ, first)
    return sorted(names or ()), first

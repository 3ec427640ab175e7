"""What the ranks have seen, put side by side: rows, weights, and of each step the gradients as vectors."""

import math
from dataclasses import dataclass, field

from manyhands.clinic.replay_rows import joined_shards

TOLERANCE = {"torch.float64": 1e-7, "torch.float32": 2e-3}  # of a vector's length; a compressed message has 1e-3
COARSE = 5e-2  # of shorter numbers
CLOSE = 1e-4  # factors of a loss that count as the same


@dataclass
class Step:
    """One step. Vectors hold all parameters of the step's optimiser, one behind the other, in the order of `names`."""

    names: list
    sizes: list
    given: list  # by rank: what the optimiser got
    right: object = None  # the gradient of one process with the rows of all ranks; None where it is not known
    raw: object = None  # the same with what the script multiplies its loss by
    scales: list | None = None  # by rank, what that is; None where it is not known
    local: list = field(default_factory=list)  # by rank, before the ranks' gradients are averaged
    plain: object = None  # the mean over the ranks, whatever their shares
    shares: list = field(default_factory=list)
    rows: list = field(default_factory=list)  # by rank, digests
    clips: list = field(default_factory=list)  # by rank
    finite: bool = True  # whether no gradient of this step holds NaN or infinity
    parts: int = 1  # backward calls that add up on each rank; 1 where that is not so
    undivided: bool | None = False  # whether none of them was divided; None where the loss is not known


class Evidence:
    """All ranks of a visit that have come through at least one step."""

    def __init__(self, visit):
        self.ranks = visit.ranks
        self.seen = [visit.seen[rank] for rank in range(visit.ranks)]
        self.one, self.cost = visit.one, visit.cost
        self.first = self.seen[0]
        self.dtype = next((str(part.dtype) for part in self.first["start"].values()), "torch.float32")
        self.tolerance = TOLERANCE.get(self.dtype, COARSE)
        self.sharded = self.first["sharded"]
        count = min(len(one["steps"]) for one in self.seen)
        self.steps = [self._step(number) for number in range(count)]
        # the steps before the first one that leaves numbers that are not finite: no other can be compared
        self.count = next((number for number in range(count) if self.not_finite(number)), count)

    def of(self, number, what):
        """By rank: what was noted of this step."""
        return [one["steps"][number][what] for one in self.seen]

    def _step(self, number):
        given = self.of(number, "given")
        names = [name for name in given[0] if any(part.get(name) is not None for part in given)]
        if not names:  # no parameter has a gradient
            given = [{name: rank["start"][name].new_zeros(rank["start"][name].shape) for name in given[0]}
                     for rank in self.seen]
            names = list(given[0])
        sizes = [next(part[name].numel() for part in given if part.get(name) is not None) for name in names]
        step = Step(names, sizes, [], rows=[[row for call in calls for row in call["rows"]]
                                            for calls in self.of(number, "calls")], clips=self.of(number, "clips"))
        if self.sharded:
            step.given = [self._whole(given, names)] * self.ranks
            step.raw = step.right = self._in_one_process(names, number)
            step.scales = self._scales(number)
            if step.right is not None and step.scales:
                step.right = step.raw / step.scales[0] if len(set(step.scales)) == 1 else None
            return self._checked(step, number)
        step.given = [vector(part, names, sizes) for part in given]
        step.local = [vector(part, names, sizes) for part in self.of(number, "local")]
        step.shares = shares(self.of(number, "backwards"), step.rows)
        step.raw = step.right = sum(share * part for share, part in zip(step.shares, step.local))
        step.scales = self._scales(number)
        if step.scales:
            step.right = sum(share * part / scale
                             for share, part, scale in zip(step.shares, step.local, step.scales))
        step.plain = sum(step.local) / self.ranks
        return self._checked(step, number)

    def _checked(self, step, number):
        step.finite = all(map(finite, [*step.given, *step.local]))
        if step.right is not None and not finite(step.right):
            step.right = None
        backwards = self.of(number, "backwards")
        counts = {len(of_rank) if len(calls) >= len(of_rank) else 1
                  for of_rank, calls in zip(backwards, self.of(number, "calls"))}
        if len(counts) == 1 and max(counts) > 1:
            scales = [scale_of_each(of_rank) for of_rank in backwards]
            step.parts, step.undivided = counts.pop(), None if None in scales else set(scales) == {1.0}
        return step

    def not_finite(self, number):
        """What holds NaN or infinity in a step, and on which ranks: ("local" | "given" | "weights", {rank: tensor}); or
        None. A GradScaler leaves such gradients out, so only weights count then."""
        step = self.steps[number]
        weights = [list(weights.values()) for weights in self.of(number, "weights")]
        looked_at = {"weights": weights}
        if not self.first["scaled"]:
            looked_at = {"local": [[one] for one in step.local], "given": [[one] for one in step.given], **looked_at}
        for what, by_rank in looked_at.items():
            found = {rank: next(one for one in parts if not finite(one)) for rank, parts in enumerate(by_rank)
                     if not all(map(finite, parts))}
            if found:
                return what, found
        return None

    def _scales(self, number):
        scales = [loss_scale(of_rank) for of_rank in self.of(number, "backwards")]
        return scales if all(scales) else None

    def _whole(self, given, names):
        import torch

        return torch.cat([joined_shards([part[name] for part in given], self.sharded.get(name, ""), -1).double()
                          for name in names])

    def _in_one_process(self, names, number):
        import torch

        gradient = self.tried_gradient(number)
        if gradient is None or any(name not in gradient for name in names):
            return None
        return torch.cat([gradient[name].double() for name in names])

    def tried_gradient(self, number=0):
        """A step's gradient of the run in one process, {name: numbers}; None where it is no measure of anything."""
        one = self.one
        if not one or "not" in one or not all(one[key] <= self.tolerance for key in ("far", "unfaithful")):
            return None
        return one["gradients"][number] if number < len(one["gradients"]) else None

    def start_differs(self):
        """[names] of parameters that do not begin the same on all ranks."""
        if self.sharded:
            return []
        return [name for name, part in self.first["start"].items()
                if any(apart(other["start"].get(name), part) > self.tolerance for other in self.seen[1:])]

    def weights_apart(self, number):
        """By rank: how far its weights after a step are from rank 0's, in parts of their length."""
        if self.sharded:
            return [0.0] * self.ranks
        weights = self.of(number, "weights")
        return [max((apart(part.get(name), mine) for name, mine in weights[0].items()), default=0.0)
                for part in weights]


def vector(parts, names, sizes):
    import torch

    return torch.cat([torch.zeros(size, dtype=torch.float64) if parts.get(name) is None else parts[name].double()
                      for name, size in zip(names, sizes)])


def loss_scale(backwards):
    """What a rank multiplies the mean of its loss's terms by before it calls backward; over several calls in a step, as
    the one call with all of them would be. None where it is not known."""
    each = scale_of_each(backwards)
    return each if each in (1.0, None) else each * len(backwards)


def scale_of_each(backwards):
    """What the mean of each loss is multiplied by, where that is the same for all backward calls; else None."""
    found = []
    for one in backwards:
        loss = one["losses"][0] if len(one["losses"]) == 1 else {"reduction": "none"}
        if loss["reduction"] not in ("mean", "sum") or not loss["value"] or not one["value"] or not loss["terms"]:
            return None
        if loss["reduction"] == "sum" and one["value"] == loss["value"]:
            return None  # a sum as it is: one process would take it over all rows, or would divide it
        mean = loss["value"] / (loss["terms"] if loss["reduction"] == "sum" else 1)
        found.append(one["value"] / mean)
    if not found or not all(map(math.isfinite, found)) or max(found) - min(found) > CLOSE * abs(max(found)):
        return None
    return 1.0 if abs(found[0] - 1) < CLOSE else found[0]


def shares(backwards, rows):
    """By rank: its part of the global mean. By the terms of its losses where these are seen, else by its rows."""
    terms = []
    for of_rank in backwards:
        each = [one["losses"][0]["terms"] for one in of_rank
                if len(one["losses"]) == 1 and one["losses"][0]["reduction"] in ("mean", "sum")]
        terms.append(sum(each) if each and len(each) == len(of_rank) and len(set(each)) == 1 else None)
    if any(not count for count in terms):
        terms = [len(of_rank) for of_rank in rows]
    if any(not count for count in terms):
        terms = [1] * len(rows)
    return [count / sum(terms) for count in terms]


def finite(tensor):
    return bool(tensor.isfinite().all())


def apart(a, b):
    """The length of the difference, in parts of b's length; inf where they cannot be compared. What is not finite is
    the same where both have it at the same places."""
    if a is None or b is None or a.shape != b.shape:
        return float("inf")
    a, b = a.double(), b.double()
    if not (finite(a) and finite(b)):
        both = a.isfinite() & b.isfinite()
        return apart(a[both], b[both]) if a.isfinite().equal(b.isfinite()) else float("inf")
    return float((a - b).norm() / b.norm().clamp(min=1e-30)) if b.numel() and not a.equal(b) else 0.0


def fit(given, wanted):
    """(factor, rest): `given` is factor * `wanted`, up to a rest in parts of the length of `given`."""
    length = float(wanted @ wanted)
    if not length or not float(given @ given):
        return 0.0, float("inf")
    factor = float(given @ wanted) / length
    return factor, float((given - factor * wanted).norm() / given.norm())


def wished(step, ranks):
    """The gradient of one process, as short as clipping has made it, or with a factor of the loss that somebody may
    want: not the number of ranks."""
    if any(step.clips):
        return step.right * (step.given[0].norm() / step.right.norm().clamp(min=1e-30))
    scale = step.scales[0] if step.scales and len(set(step.scales)) == 1 else 1.0
    return step.right if any(abs(scale / odd - 1) < 0.02 for odd in (ranks, 1 / ranks)) else step.right * scale


def moved_apart(evidence):
    """Take the steps anew with the gradients of one process, and say how far each rank's way is from that, in parts
    of its length: [by rank], or None where the optimiser is not torch's, or no gradient of one process is known."""
    import torch

    steps = [one for one in evidence.first["steps"][:evidence.count]]
    if not steps or evidence.sharded or any(step["optimizer"] != steps[0]["optimizer"] for step in steps):
        return None
    module, kind = steps[0]["optimizer"]
    if not hasattr(torch.optim, kind) or not (module.startswith("torch.optim") or "horovod" in module):
        return None
    start = {name: torch.nn.Parameter(part.clone()) for name, part in evidence.first["start"].items()}
    groups = [{"params": [start[name] for name in names], **options} for options, names in steps[0]["groups"]]
    groups = [group for group in groups if group["params"]]
    optimizer = getattr(torch.optim, kind)(groups, lr=groups[0]["lr"])
    for number, step in enumerate(steps):
        whole = evidence.steps[number]
        for group, (options, _) in zip(optimizer.param_groups, [g for g in step["groups"] if g[1]]):
            group.update(options)
        for name, part in zip(whole.names, wished(whole, evidence.ranks).split(whole.sizes)):
            start[name].grad = part.to(start[name].dtype)
        optimizer.step()
    names = sorted(steps[-1]["weights"])
    sizes = [start[name].numel() for name in names]
    before = vector(evidence.first["start"], names, sizes)
    way = vector({name: start[name].detach() for name in names}, names, sizes) - before
    return [apart(vector(weights, names, sizes) - before, way)
            for weights in evidence.of(evidence.count - 1, "weights")]

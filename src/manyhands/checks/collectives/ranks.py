"""The half of unit 04's checks that runs on the ranks.

It makes experiments with the learner's functions and records each message.

Every experiment returns plain data. All numbers are whole, so that a sum is the same in any order
and "equal" means to the last bit. Groups take turns. Meanwhile, the ranks that are not in a group
wait in a barrier, so that no message to one of them is ever received.
"""

from __future__ import annotations

import random
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.distributed as dist

from manyhands.checks.collectives.ways_on_ranks import WAYS
from manyhands.checks.on_ranks import learners
from manyhands.checks.rank_tools import fresh_world, short_lived, total

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Unpack

    from manyhands.checks.collectives.answers import (
        Asked,
        Case,
        Comparison,
        CostCase,
        Costs,
        Counted,
        More,
    )

Members = tuple[int, ...]  # ranks of a group
# and the largest number
DTYPES = {
    "float32": (torch.float32, 1000),
    "float64": (torch.float64, 2**36),
    "int64": (torch.int64, 2**36),
}


def members_of(seed: int) -> list[Members]:
    """Return groups of 5, 3 and 2 ranks.

    The small ones are drawn without rank 0, so no rank has its number in the world.
    """
    chance, world = random.Random(seed), range(5)
    return [tuple(world), *(chance.choice(list(combinations(world[1:], p))) for p in (3, 2))]


def powers_of_two(seed: int) -> list[Members]:
    """Return groups of 4 and 2 ranks, without rank 0."""
    chance = random.Random(f"{seed} powers of two")
    return [chance.choice(list(combinations(range(1, 5), p))) for p in (4, 2)]


def groups(
    seed: int, members_of: Callable[[int], list[Members]] = members_of
) -> Iterator[tuple[Members, dist.ProcessGroup | None]]:
    """Yield (members, group) for each group of this rank.

    The world itself is `None`, which is the learner's default.
    """
    made = [
        (
            members,
            None if len(members) == dist.get_world_size() else short_lived(dist.new_group(members)),
        )
        for members in members_of(seed)
    ]
    for members, group in made:
        if dist.get_rank() in members:
            yield members, cast("dist.ProcessGroup | None", group)
        dist.barrier()


def counted(call: Callable[[], object]) -> Counted:
    """Run a call under the ledger, and return this rank's account.

    It comes with the names of the collectives of torch.distributed that the call used.
    """
    from manyhands.ledger import Ledger

    with Ledger() as ledger:
        call()
    return {
        "account": ledger.account(),
        "library": sorted({entry.call for entry in ledger.entries} - {"send", "recv"}),
    }


def shapes(seed: int, p: int) -> list[tuple[str, tuple[int, ...]]]:
    """Return [(dtype, shape)] of the tensors to try.

    There are numbers that p does not divide, fewer numbers than ranks, two dimensions, and numbers
    that p does divide.
    """
    chance = random.Random(f"{seed} {p}")
    k = chance.randint(8, 14)
    return [
        ("float32", (p * k + chance.randint(1, p - 1),)),
        ("int64", (p - 1,)),
        ("float64", (p + 1, p * (k - 3) + 1)),
        ("float32", (p * (k + 1),)),
    ]


def everyones(seed: int, p: int, dtype: str, shape: tuple[int, ...]) -> list[torch.Tensor]:
    """Return what each rank puts in, which is p tensors of whole numbers without a 0."""
    kind, most = DTYPES[dtype]
    chance = torch.Generator().manual_seed(
        random.Random(f"{seed} {p} {dtype} {shape}").randrange(2**31)
    )
    return [torch.randint(1, most, shape, generator=chance).to(kind) for _ in range(p)]


def compare(
    got: torch.Tensor, right: torch.Tensor, wrong: Mapping[str, torch.Tensor]
) -> Comparison:
    """Return one comparison as plain data.

    It says whether the value is right, has a sample as evidence, and names the `wrong` value that
    it looks like.
    """
    looks = next((name for name, value in wrong.items() if same(got, value)), "other")
    return {
        "right": same(got, right),
        "looks": looks,
        "sample": sample(got),
        "wanted": sample(right),
    }


def same(a: Any, b: torch.Tensor) -> bool:
    """Whether `a` is a tensor with the shape, the dtype and the numbers of b."""
    return (
        isinstance(a, torch.Tensor)
        and a.shape == b.shape
        and a.dtype == b.dtype
        and torch.equal(a, b)
    )


def sample(tensor: torch.Tensor) -> list[float]:
    """Return a few numbers of a tensor that also depend on the order of its values."""
    flat = tensor.detach().double().flatten()
    return [
        *flat[:2].tolist(),
        *flat[-1:].tolist(),
        flat.sum().item(),
        (flat * torch.arange(1, 1 + flat.numel())).sum().item(),
    ]


def case_of(members: Members, me: int, dtype: str, numel: int, **more: Unpack[More]) -> Case:
    """Return what identifies a call on one rank of a group, with what more there is to say."""
    return {
        "members": members,
        "me": me,
        "p": len(members),
        "dtype": dtype,
        "numel": numel,
        "itemsize": DTYPES[dtype][0].itemsize,
        **more,
    }


# ------------------------------------------------------------------ 1: broadcast


@fresh_world()
def broadcast(name: str, seed: int) -> list[Case]:
    """Run the learner's broadcast from every root of every group."""
    function = learners(name)
    results: list[Case] = []
    for members, group in groups(seed):
        me, p = dist.get_rank(group), len(members)
        for root in range(p):
            dtype, shape = shapes(seed + root, p)[root % 3]
            given = everyones(seed + root, p, dtype, shape)
            x = given[me].clone()
            result = counted(lambda: function(x, root, group))  # noqa: B023
            wrong = {"own": given[me], **{f"of rank {r}": given[r] for r in range(p) if r != root}}
            results.append(
                case_of(
                    members,
                    me,
                    dtype,
                    x.numel(),
                    root=root,
                    **result,
                    **compare(x, given[root], wrong),
                )
            )
    return results


# ------------------------------------------------------------------ 2 and 3: the halves of the ring


def _halves(
    name: str,
    seed: int,
    fill: Callable[[Sequence[torch.Tensor], int], torch.Tensor],
    judge: Callable[..., Comparison],
) -> list[Case]:
    """Run the learner's function on chunks that are cut from one tensor.

    `fill` makes the tensor, and `judge` judges it afterwards.
    """
    function = learners(name)
    results: list[Case] = []
    for members, group in groups(seed):
        me, p = dist.get_rank(group), len(members)
        for dtype, shape in shapes(seed, p)[:3]:
            given = [x.flatten() for x in everyones(seed, p, dtype, shape)]
            x = fill(given, me)
            chunks = list(x.tensor_split(p))
            result = counted(lambda: function(chunks, group))  # noqa: B023
            answer = judge(list(x.tensor_split(p)), given, me, chunks)
            results.append(case_of(members, me, dtype, x.numel(), **result, **answer))
    return results


@fresh_world()
def reduce_scatter(name: str, seed: int) -> list[Case]:
    """Run the learner's reduce-scatter with several shapes and dtypes in each group."""
    return _halves(name, seed, lambda given, me: given[me].clone(), _reduced)


def _reduced(
    chunks: list[torch.Tensor],
    given: Sequence[torch.Tensor],
    me: int,
    listed: Sequence[torch.Tensor],
) -> Comparison:
    p = len(given)
    # parts[r][j]: rank r's numbers of chunk j
    parts = [list(tensor.tensor_split(p)) for tensor in given]
    totals = [total(part[j] for part in parts) for j in range(p)]
    own, right = parts[me][me], totals[me]
    wrong = {"own": own, "twice": right + own, "mean": torch.div(right, p).to(right.dtype)}
    # after too few rounds, the sum holds the nearest ranks behind this one, or before it
    for k in range(2, p):
        wrong |= {
            f"{k} of them": total(parts[(me - i) % p][me] for i in range(k)),
            f"{k} of them, before": total(parts[(me + i) % p][me] for i in range(k)),
        }
    answer = compare(chunks[me], right, wrong)
    if not answer["right"] and len(listed) == p and same(listed[me], right):
        answer["looks"] = "only in the list"
    elif not answer["right"]:
        elsewhere = [
            j for j in range(p) if j != me and chunks[j].numel() and same(chunks[j], totals[j])
        ]
        answer.update({"looks": "elsewhere", "elsewhere": elsewhere[0]} if elsewhere else {})
    return answer


@fresh_world()
def all_gather(name: str, seed: int) -> list[Case]:
    """Run the learner's all-gather with several shapes and dtypes in each group."""
    return _halves(name, seed, _own_chunk_only, _gathered)


def _own_chunk_only(given: Sequence[torch.Tensor], me: int) -> torch.Tensor:
    """Return a tensor with this rank's own chunk, and -1 in the places of the others."""
    x = torch.full_like(given[0], -1)
    x.tensor_split(len(given))[me].copy_(given[me].tensor_split(len(given))[me])
    return x


def _gathered(
    chunks: list[torch.Tensor],
    given: Sequence[torch.Tensor],
    me: int,
    listed: Sequence[torch.Tensor],
) -> Comparison:
    p = len(given)
    wanted = [given[r].tensor_split(p)[r] for r in range(p)]
    bad = [j for j in range(p) if not same(chunks[j], wanted[j])]
    wrong: dict[str, torch.Tensor] = {}
    for j in bad[:1]:
        wrong = {
            "never filled": torch.full_like(wanted[j], -1),
            **{f"chunk {k}": wanted[k] for k in range(p) if k != j},
        }
    answer = compare(torch.cat(chunks), torch.cat(wanted), {})
    if bad:
        answer["looks"] = next(
            (name for name, value in wrong.items() if same(chunks[bad[0]], value)), "other"
        )
        if len(listed) == p and all(same(a, b) for a, b in zip(listed, wanted, strict=True)):
            answer["looks"] = "only in the list"
        elif same(chunks[me], torch.full_like(wanted[me], -1)):
            # a rank's own chunk was right at the start
            answer["looks"] = "overwritten"
        answer["bad"] = bad[0]
    return answer


# ------------------------------------------------------------------ 4: all-reduce


@fresh_world()
def all_reduce(name: str, seed: int) -> list[Case]:
    """Run the learner's all-reduce with all shapes and dtypes in each group."""
    function = learners(name)
    results: list[Case] = []
    for members, group in groups(seed):
        me, p = dist.get_rank(group), len(members)
        for dtype, shape in shapes(seed, p):
            given = everyones(seed, p, dtype, shape)
            x = given[me].clone()
            result = counted(lambda: function(x, group))  # noqa: B023
            answer = compare(x, total(given), _wrong_sums(given, me))
            if answer["looks"] == "other" and x.shape == given[me].shape:
                answer["looks"] = _partly(x.flatten(), total(given).flatten(), p)
            results.append(case_of(members, me, dtype, given[me].numel(), **result, **answer))
    return results


def _wrong_sums(given: Sequence[torch.Tensor], me: int) -> dict[str, torch.Tensor]:
    p, right = len(given), total(given)
    return {
        "unchanged": given[me],
        "mean": torch.div(right, p).to(right.dtype),
        "twice": right + given[me],
        "without its own": right - given[me],
        "doubled": 2 * right,
        "times p": p * right,
        "rounded": total(tensor.float() for tensor in given).to(right.dtype),
    }


def _partly(x: torch.Tensor, right: torch.Tensor, p: int) -> str:
    """Return which numbers are right.

    They may be all but the remainder of the division, or about one chunk of them.
    """
    fine, n = (x == right).tolist(), len(x)
    even = n - n % p
    if n % p and even and all(fine[:even]) and not any(fine[even:]):
        return "rest"
    return "one chunk" if 0 < sum(fine) <= n // p + 1 and n > p else "other"


# ------------------------------------------------------------------ 5: cost


def cost(bytes_name: str, rounds_name: str, seed: int) -> Costs:
    """Return what the learner predicts, and what the ledger counts of each of WAYS in a group."""
    most_bytes, rounds = learners(bytes_name), learners(rounds_name)

    def asked(way: str, p: int, nbytes: int) -> Asked:
        return {
            "way": way,
            "p": p,
            "bytes": nbytes,
            "predicted bytes": None if way == "broadcast" else _number(most_bytes(way, p, nbytes)),
            "predicted rounds": _number(rounds(way, p)) if way in ("broadcast", "ring") else None,
        }

    chance = random.Random(f"{seed} cost")
    results: list[CostCase] = []
    for members, group in groups(seed):
        p = len(members)
        n = p * random.Random(seed).randint(20, 60)
        for way, function in WAYS.items():
            x = torch.ones(n)
            result = counted(partial(function, x, group))
            assert torch.equal(x, torch.full((n,), 1.0 if way == "broadcast" else float(p)))
            results.append(
                {
                    **case_of(members, dist.get_rank(group), "float32", n),
                    **result,
                    **asked(way, p, 4 * n),
                }
            )
    worlds = [
        (p, p * chance.randint(8000, 90000))
        for p in (chance.randint(33, 63), chance.randint(900, 1100))
    ]
    return {
        "cases": results,
        "large": [asked(way, p, nbytes) for way in WAYS for p, nbytes in worlds],
    }


def _number(value: Any) -> float | str:
    return (
        value
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**60
        else repr(value)
    )


# ------------------------------------------------------------------ 6: halving and doubling


@fresh_world()
def halving(name: str, seed: int) -> list[Case]:
    """Run the learner's function with each dtype in groups of 4 and 2 ranks.

    These numbers divide the number of elements.
    """
    function = learners(name)
    results: list[Case] = []
    for members, group in groups(seed, powers_of_two):
        me, p = dist.get_rank(group), len(members)
        for dtype, shape in zip(DTYPES, ((p * (seed % 5 + 7),), (2 * p, 3), (p,)), strict=True):
            given = everyones(seed, p, dtype, shape)
            x = given[me].clone()
            result = counted(lambda: function(x, group))  # noqa: B023
            answer = compare(x, total(given), _wrong_sums(given, me))
            if answer["looks"] == "other" and x.shape == given[me].shape:
                rounded = torch.allclose(x.double(), total(given).double(), rtol=1e-5, atol=0)
                answer.update(
                    {"looks": "rounded"}
                    if rounded
                    else _misplaced(x.flatten().chunk(p), total(given).flatten().chunk(p))
                )
            results.append(case_of(members, me, dtype, given[me].numel(), **result, **answer))
    return results


def _misplaced(parts: Sequence[torch.Tensor], totals: Sequence[torch.Tensor]) -> Comparison:
    """Return whether one part of x holds the sum of a different part."""
    for j, part in enumerate(parts):
        other = next((k for k, total in enumerate(totals) if k != j and same(part, total)), None)
        if other is not None:
            return {"looks": "misplaced", "bad": j, "elsewhere": other}
    return {}

"""How the checks of unit 07 judge answers: what is right, and which mistakes they recognise.

Every `..._problem` returns None or the details of a FAIL line, which are `rank`, `expected`, `got`
and the likely `mistake`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from manyhands.checks.multiworker.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from manyhands.checks.multiworker.answers import FittedCase, LossCase
    from manyhands.checks.report import Problem

    Layout = tuple[list[str], int, dict[str, int]]  # hosts, first port, roles

ATOL = 1e-9
FIT_ATOL = 1e-6  # Keras may compute in single precision


def say(
    mistake: str, rank: int | None = None, expected: Any = None, got: Any = None, **facts: Any
) -> Problem:
    """Return the details of a FAIL line, whose message is filled with the rank and these facts."""
    return {
        "rank": rank,
        "expected": expected,
        "got": got,
        "mistake": MISTAKES[mistake].format(rank=rank, **facts),
    }


def near(a: Any, b: Any) -> bool:
    """Whether two arrays have the same shape and values, up to ATOL."""
    return np.shape(a) == np.shape(b) and bool(
        np.all(np.abs(np.asarray(a) - b) <= ATOL * (1 + np.abs(b)))
    )


# ------------------------------------------------------------------ 1: config


def kinds(roles: Mapping[str, int]) -> list[str]:
    """Return the kind of each process, in order."""
    return [kind for kind, count in roles.items() for _ in range(count)]


def config_of(
    hosts: Sequence[str], first_port: int, roles: Mapping[str, int], number: int
) -> dict[str, Any]:
    """Return what TF_CONFIG must tell process `number`, as a dict."""
    cluster: dict[str, list[str]] = {}
    used: dict[str, int] = {}
    tasks: list[dict[str, Any]] = []
    for host, kind in zip(hosts, kinds(roles), strict=True):
        tasks.append({"type": kind, "index": len(cluster.setdefault(kind, []))})
        cluster[kind].append(f"{host}:{first_port + used.get(host, 0)}")
        used[host] = used.get(host, 0) + 1
    return {"cluster": cluster, "task": tasks[number]}


def parsed(answer: Any) -> tuple[Any, Problem | None]:
    """Return (the dict in a learner's TF_CONFIG, None), or (None, what is wrong with it)."""
    if not isinstance(answer, str):
        return None, say("not text", got=type(answer).__name__)
    try:
        config = json.loads(answer)
    except ValueError as error:
        return None, say("not json", got=answer[:60], error=error)
    task = config.get("task") if isinstance(config, dict) else None
    if (
        not isinstance(task, dict)
        or not {"type", "index"} <= set(task)
        or not isinstance(config.get("cluster"), dict)
    ):
        return None, say("keys", got=answer[:60])
    return config, None


def cluster_problem(layout: Layout, configs: Sequence[dict[str, Any]]) -> Problem | None:
    """Return the problem with "cluster" in `configs`, those of all processes of one layout."""
    _, first_port, roles = layout
    right = config_of(*layout, 0)["cluster"]
    for number, config in enumerate(configs):
        got = config["cluster"]
        if got == right:
            continue
        facts: dict[str, Any] = {"number": number, "roles": roles, "first": first_port}
        flat = [
            str(address)
            for addresses in got.values()
            for address in (addresses if isinstance(addresses, list) else [addresses])
        ]
        twice = next((address for address in flat if flat.count(address) > 1), None)
        mistake, address = (
            "order",
            next((address for address in flat if address.startswith(("localhost", "127."))), None),
        )
        if number and configs[0]["cluster"] == right:
            mistake = "differs"
        elif set(got) != set(right):
            mistake = "kinds"
        elif address:
            mistake = "localhost"
        elif any(":" not in address for address in flat):
            mistake, address = "no port", next(address for address in flat if ":" not in address)
        elif twice:
            mistake, address = "address twice", twice
        elif [address.split(":")[0] for address in flat] == [
            address.split(":")[0] for addresses in right.values() for address in addresses
        ]:
            mistake = "other port"
        return say(
            mistake, expected=json.dumps(right), got=json.dumps(got), address=address, **facts
        )
    return None


def task_problem(layout: Layout, configs: Sequence[dict[str, Any]]) -> Problem | None:
    """Return the problem with "task" in `configs`, those of all processes of one layout."""
    for number, config in enumerate(configs):
        right, got = config_of(*layout, number)["task"], config["task"]
        if got == right and not isinstance(got["index"], bool):
            continue
        wanted = f"{right['type']} {right['index']}"
        mistake = "index"
        if got["type"] != right["type"]:
            mistake, wanted = "type", right["type"]
        elif got["index"] == str(right["index"]):
            mistake = "index is text"
        elif got["index"] == number:
            mistake = "counted over all"
        return say(
            mistake,
            expected=json.dumps(right),
            got=json.dumps(got),
            number=number,
            roles=layout[2],
            right=wanted,
        )
    return None


# ------------------------------------------------------------------ 2: fit


def steps_problem(rank: int, case: FittedCase) -> Problem | None:
    """Return the problem with the number of a worker's steps."""
    if case["steps"] == case["right steps"]:
        return None
    keys: tuple[Literal["samples", "batch", "epochs"], ...] = ("samples", "batch", "epochs")
    facts: dict[str, Any] = {key: case[key] for key in keys}
    return say(
        "not trained" if case["steps"] is None else "steps",
        rank,
        case["right steps"],
        case["steps"],
        right=case["right steps"],
        **facts,
    )


def weights_problem(rank: int, case: FittedCase) -> Problem | None:
    """Return the problem with a worker's weights at the end."""
    if not case["looks"]:
        return None
    return {
        "rank": rank,
        "expected": case["right"],
        "got": case["got"],
        "mistake": MISTAKES["fit", case["looks"]].format(rank=rank, n=case["workers"]),
    }


# ------------------------------------------------------------------ 3: loss


def loss_problem(case: LossCase) -> Problem | None:
    """Return the problem with the sum of all workers' parts of the objective."""
    if not case["looks"]:
        return None
    facts = {"n": len(case["sizes"]), "sizes": case["sizes"]}
    return {
        "expected": case["right"],
        "got": case["got"],
        "mistake": MISTAKES["loss", case["looks"]].format(**facts),
    }


# ------------------------------------------------------------------ 4: seen


def who_sees(policy: str, files: list[int], global_batch: int, workers: int) -> list[list[int]]:
    """Return the samples of each worker, in the order in which it sees them.

    Samples are numbered through all files, which hold `files[0]`, `files[1]`, ... of them.
    """
    every = list(range(sum(files)))
    if policy == "OFF":
        return [every] * workers
    if policy == "FILE":
        starts = [sum(files[:i]) for i in range(len(files))]
        return [
            [
                k
                for i in range(w, len(files), workers)
                for k in range(starts[i], starts[i] + files[i])
            ]
            for w in range(workers)
        ]
    seen: list[list[int]] = [[] for _ in range(workers)]
    for begin in range(0, len(every), global_batch):
        batch = every[begin : begin + global_batch]
        share = -(-len(batch) // workers)
        for worker, own in enumerate(seen):
            own += batch[worker * share : (worker + 1) * share]
    return seen


def plain_lists(answer: Any, workers: int) -> list[list[int]] | None:
    """Return a learner's answer as lists of whole numbers, one for each worker, or None."""
    try:
        lists = [[int(sample) for sample in own] for own in answer]
    except (TypeError, ValueError):
        return None
    return lists if len(lists) == workers else None


def seen_problem(
    case: tuple[str, list[int], int, int], answer: list[list[int]] | None
) -> Problem | None:
    """Return the problem with the samples that each worker sees, according to the learner."""
    policy, files, batch, n = case
    right = who_sees(*case)
    if answer is None:
        return say("not lists", n=n)
    if answer == right:
        return None
    every = list(range(sum(files)))
    looks: list[tuple[str, list[list[int]]]] = {
        "DATA": [
            ("like cards", [every[w::n] for w in range(n)]),
            ("blocks", [part.tolist() for part in np.array_split(every, n)]),
            ("last batch", _pieces(every, batch, lambda size: -(-batch // n), n)),
            ("as even as possible", _even(every, batch, n)),
        ],
        "FILE": [("files in blocks", _file_blocks(files, n))],
        "OFF": [],
    }[policy]
    mistake = next((name for name, wrong in looks if wrong == answer), policy)
    worker = next(w for w in range(n) if answer[w] != right[w])
    problem = say(mistake, expected=right[worker], got=answer[worker], n=n, batch=batch)
    return {**problem, "rank": worker}


def _pieces(
    every: list[int], batch: int, share_of: Callable[[int], int], n: int
) -> list[list[int]]:
    seen: list[list[int]] = [[] for _ in range(n)]
    for begin in range(0, len(every), batch):
        own = every[begin : begin + batch]
        for worker in range(n):
            seen[worker] += own[worker * share_of(len(own)) : (worker + 1) * share_of(len(own))]
    return seen


def _even(every: list[int], batch: int, n: int) -> list[list[int]]:
    seen: list[list[int]] = [[] for _ in range(n)]
    for begin in range(0, len(every), batch):
        for worker, part in enumerate(np.array_split(every[begin : begin + batch], n)):
            seen[worker] += [int(k) for k in part]
    return seen


def _file_blocks(files: list[int], n: int) -> list[list[int]]:
    starts = [sum(files[:i]) for i in range(len(files))]
    parts = np.array_split(range(len(files)), n)
    return [[k for i in part for k in range(starts[i], starts[i] + files[i])] for part in parts]

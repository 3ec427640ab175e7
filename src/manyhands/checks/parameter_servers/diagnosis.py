"""Judge what the ranks have reported in unit 08's checks.

Here are the right answers and the mistakes that wrong ones look like. Every `..._problem` returns
None, or the details of a FAIL line: `rank`, `expected`, `got` and the likely `mistake`.
"""

from __future__ import annotations

import random
from collections import Counter
from math import prod
from typing import TYPE_CHECKING, Any

from manyhands.checks import by_rank
from manyhands.checks.parameter_servers.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manyhands.checks.parameter_servers.answers import (
        Cover,
        Pieces,
        PlaceCase,
        PlacedCase,
        ServersCase,
        Shape,
        StaleCase,
        StrategyCase,
        TensorsCase,
        TrainCase,
    )
    from manyhands.checks.report import Problem

ITEM = 8  # bytes of a number
# bytes that each worker may push in addition to its gradients, for the count and a length
COUNTS = 64


def row_bytes(shape: Shape) -> int:
    """Return the bytes of one row of a variable."""
    return ITEM * prod(shape[1:])


def all_bytes(shapes: Sequence[Shape]) -> int:
    """Return the bytes of all variables."""
    return sum(ITEM * prod(shape) for shape in shapes)


def room_for(shapes: Sequence[Shape], servers: int) -> int:
    """Return the bytes that a server may keep.

    They are an even part and the largest row, so that a solution always exists.
    """
    return -(-all_bytes(shapes) // servers) + max(map(row_bytes, shapes))


def placed(shapes: Sequence[Shape], servers: int) -> Pieces:
    """Return a right placement, which fills one server after another.

    It is [[variable, start, stop, server]].
    """
    room = free = room_for(shapes, servers)
    pieces, server = [], 0
    for variable, shape in enumerate(shapes):
        start = 0
        while start < shape[0]:
            stop = min(shape[0], start + free // row_bytes(shape))
            if stop > start:
                pieces.append([variable, start, stop, server])
                free -= (stop - start) * row_bytes(shape)
                start = stop
            else:
                server, free = server + 1, room
    return pieces


# ------------------------------------------------------------------ 1: place


def place_cases(seed: int) -> list[PlaceCase]:
    """Return the cases of the criterion.

    They are a table next to small variables on many servers, the track's network, variables of few
    rows, and one server.
    """
    draw = random.Random(seed)
    table: list[Shape] = [(draw.randint(400, 600), 16), (16, 24), (24,), (24, 10), (10,)]
    few: list[Shape] = [(3, draw.randint(20, 40)) for _ in range(6)]
    worlds: tuple[tuple[list[Shape], int, int], ...] = (
        (table, 5, 8),
        ([(32, 64), (32,), (10, 32), (10,)], draw.randint(3, 9), 2),
        (few, 3, 2),
        ([(draw.randint(5, 9), 7), (7,)], 2, 1),
    )
    return [
        {
            "shapes": shapes,
            "workers": workers,
            "servers": servers,
            "link": workers * room_for(shapes, servers),
        }
        for shapes, workers, servers in worlds
    ]


def rows_covered(case: Cover) -> tuple[list[Counter[int]], int]:
    """Count how often each row of each variable is in a piece, and the pieces that are outside."""
    seen: list[Counter[int]] = [Counter() for _ in case["shapes"]]
    stray = 0
    for variable, start, stop, server in case["pieces"] or ():
        if not (
            0 <= variable < len(seen)
            and 0 <= server < case["servers"]
            and 0 <= start <= stop <= case["shapes"][variable][0]
        ):
            stray += 1
        else:
            seen[variable].update(range(start, stop))
    return seen, stray


def cover_problem(case: Cover) -> Problem | None:
    """Find whether every row is in exactly one piece, on a server that exists."""
    seen, stray = rows_covered(case)
    if case["pieces"] is None:
        return {
            "expected": "a list of Piece(variable, start, stop, server)",
            "mistake": MISTAKES["no pieces"],
        }
    if stray:
        beyond = any(piece[3] >= case["servers"] for piece in case["pieces"])
        return {
            "got": case["pieces"],
            "mistake": MISTAKES["stray server" if beyond else "stray"].format(
                servers=case["servers"], last=case["servers"] - 1
            ),
        }
    for variable, (shape, rows) in enumerate(zip(case["shapes"], seen, strict=True)):
        if len(rows) < shape[0] or max(rows.values()) > 1:
            mistake = (
                "rows twice"
                if len(rows) == shape[0]
                else "rest lost"
                if _divided(case, variable)
                else "rows lost"
            )
            return {
                "expected": f"{shape[0]} rows of variable {variable}",
                "got": [piece for piece in case["pieces"] if piece[0] == variable],
                "mistake": MISTAKES[mistake].format(
                    lost=shape[0] - len(rows), variable=variable, servers=case["servers"]
                ),
            }
    return None


def _divided(case: Cover, variable: int) -> bool:
    """Return whether each server has rows // servers rows of this variable."""
    part = case["shapes"][variable][0] // case["servers"]
    sizes = [
        stop - start
        for number, start, stop, _ in case["pieces"] or ()
        if number == variable and stop > start
    ]
    return sizes == [part] * (case["servers"] if part else 0)


def cover_evidence(case: Cover) -> list[int]:
    """Return how many rows of each variable are kept once, the copies too many, and strays."""
    seen, stray = rows_covered(case)
    return [sum(times == 1 for times in rows.values()) for rows in seen] + [
        sum(max(0, times - 1) for rows in seen for times in rows.values()),
        stray,
    ]


def kept(case: PlacedCase) -> list[int]:
    """Return the bytes that each server keeps."""
    n_bytes = [0] * case["servers"]
    for variable, start, stop, server in case["pieces"] or ():
        if 0 <= variable < len(case["shapes"]) and 0 <= server < case["servers"]:
            n_bytes[server] += max(0, stop - start) * row_bytes(case["shapes"][variable])
    return n_bytes


def limit_problem(case: PlacedCase) -> Problem | None:
    """Find whether no server's link carries more than the limit.

    All variables must be somewhere, since otherwise nothing would have been assigned.
    """
    most, together = max(kept(case)) * case["workers"], sum(kept(case))
    if most <= case["link"] and together >= all_bytes(case["shapes"]):
        return None
    name = _looks(case) if most > case["link"] else "not all kept"
    got = [n_bytes * case["workers"] for n_bytes in kept(case)]
    return {
        "expected": f"at most {case['link']} bytes in each step",
        "got": got,
        "picture": by_rank.numbers(
            "bytes in each step", case["link"], got, who="server", at_most=True
        ),
        "mistake": MISTAKES["limit", name].format(
            workers=case["workers"],
            servers=case["servers"],
            link=case["link"],
            most=max(kept(case)),
            room=case["link"] // case["workers"],
        ),
    }


def _looks(case: PlacedCase) -> str:
    pieces, servers, load = (
        [piece for piece in case["pieces"] or () if 0 <= piece[0] < len(case["shapes"])],
        case["servers"],
        max(kept(case)),
    )
    if load == sum(kept(case)) and servers > 1:  # all on one server
        return "numbers" if load > case["link"] else "workers"
    if all(
        start == 0 and stop == case["shapes"][variable][0] for variable, start, stop, _ in pieces
    ):
        return (
            "dealt"
            if all(server == i % servers for i, (_, _, _, server) in enumerate(sorted(pieces)))
            else "not cut"
        )
    parts = [
        [stop - start for variable, start, stop, _ in pieces if variable == v]
        for v in range(len(case["shapes"]))
    ]
    if all(
        len(sizes) == min(servers, shape[0]) and max(sizes) - min(sizes) <= 1
        for sizes, shape in zip(parts, case["shapes"], strict=True)
    ):
        return "equal parts"
    return _looks_by_load(case, pieces, load)


def _looks_by_load(case: PlacedCase, pieces: Pieces, load: int) -> str:
    """Name the mistake by the fullest server.

    It may be filled up to a different number, to less than a row, or by a row or so too much.
    """
    room, rows = case["link"] // case["workers"], [row_bytes(shape) for shape in case["shapes"]]
    server = kept(case).index(load)
    if load <= room + sum(rows[variable] for variable, _, _, where in pieces if where == server):
        return "a row too many"
    filled = {"workers": case["link"], "four bytes": 2 * room}
    mistake = next((name for name, full in filled.items() if full - max(rows) < load <= full), None)
    return mistake or ("numbers" if case["link"] < load <= ITEM * room else "other")


def limit_evidence(case: PlacedCase) -> list[int]:
    """Return the same numbers for all that is allowed, and different ones for anything else."""
    return [
        max(max(kept(case)) * case["workers"], case["link"]),
        min(sum(kept(case)), all_bytes(case["shapes"])),
    ]


def _most_pieces(case: PlacedCase) -> int:
    return max(
        Counter((variable, server) for variable, _, _, server in case["pieces"] or ()).values(),
        default=0,
    )


def pieces_problem(case: PlacedCase) -> Problem | None:
    """Find whether a server keeps at most one piece of a variable."""
    most = _most_pieces(case)
    return (
        None
        if most == 1
        else {
            "expected": "one piece",
            "got": most,
            "mistake": MISTAKES["many pieces" if most else "no pieces"],
        }
    )


def pieces_evidence(case: PlacedCase) -> int:
    """Return a number that depends on the seed and on the most pieces of a variable on a server."""
    return _most_pieces(case) * case["link"]


# ------------------------------------------------------------------ 2 to 4, and training


def value_problem(rank: int, case: TensorsCase, topic: str) -> Problem | None:
    """Return the problem with one tensor that a rank has at the end."""
    if not case["looks"]:
        return None
    words = case["looks"].split()
    key = (topic, " ".join(word for word in words if not word.isdigit()))
    facts = {
        "p": case["workers"],
        "number": next((word for word in words if word.isdigit()), ""),
        "step": case.get("step", 0) + 1,
    }
    text = MISTAKES.get(key) or MISTAKES.get((topic, "other")) or MISTAKES["other"]
    return {
        "rank": rank,
        "expected": case["right"],
        "got": case["got"],
        "mistake": text.format(**facts),
    }


def with_what_is_kept(answers: list[list[TensorsCase]]) -> list[list[TensorsCase]]:
    """Return the answers of a synchronous step, with what looks "as kept" marked.

    A worker that has pulled what is wrong on the servers looks so, because the update is wrong and
    not the answer.
    """
    cases = [case for some in answers for case in some]
    on_servers: dict[Any, dict[Any, Any]] = {}
    for case in cases:
        if case["topic"] == "step":
            # a wrong answer may have more numbers, or fewer
            on_servers.setdefault((case["layout"], case["step"]), {}).update(
                zip(case["places"] or (), case["got"] or (), strict=False)
            )
    for case in cases:
        there = on_servers.get((case["layout"], case["step"]), {})
        if (
            case["topic"] == "answer"
            and case["looks"]
            and case["got"]
            and len(case["got"]) == len(there)
            and all(
                abs(there[place] - number) <= 1e-9 * (1 + abs(number))
                for place, number in enumerate(case["got"])
            )
        ):
            case["looks"] = "as kept"
    return answers


def stale_problem(rank: int, case: StaleCase) -> Problem | None:
    """Return the problem with the staleness that a server has reported."""
    got, right = case["stale"], case["wanted"]
    if got == right:
        return None
    if got is None:
        name = "no list"
    elif got == [updates + 1 for updates in right]:
        name = "one more"
    elif got == list(range(len(right))) or got == list(range(1, len(right) + 1)):
        name = "versions"
    elif got == case["between"]:
        name = "between"
    else:
        name = "other"
    return {
        "rank": rank,
        "expected": right,
        "got": got,
        "mistake": MISTAKES["stale", name].format(schedule=case["schedule"]),
    }


def staleness(schedule: Sequence[int]) -> list[int]:
    """Return [updates since this worker was last answered] for each push."""
    answered: dict[int, int] = {}
    of_pushes = []
    for updates, worker in enumerate(schedule):
        of_pushes.append(updates - answered.get(worker, 0))
        answered[worker] = updates + 1
    return of_pushes


def between(schedule: Sequence[int]) -> list[int]:
    """Return a likely mistake, the pushes since this worker's last one, which is counted too.

    For a worker's first push, these are all pushes before it.
    """
    last: dict[int, int] = {}
    of_pushes = []
    for number, worker in enumerate(schedule):
        of_pushes.append(number - last.get(worker, 0))
        last[worker] = number
    return of_pushes


# ------------------------------------------------------------------ 5: servers


def servers_problem(case: ServersCase) -> Problem | None:
    """Return the problem with the number of servers that the learner asks for."""
    got, right = case["got"], case["right"]
    if got == right:
        return None
    name = next((name for name, value in case["wrong"].items() if got == value), "other")
    name = "beyond" if right is None and isinstance(got, int) and name == "other" else name
    return {
        "expected": right,
        "got": got,
        "mistake": MISTAKES["servers", name].format(
            workers=case["workers"], limit_s=case["limit_s"]
        ),
    }


# ------------------------------------------------------------------ 6: TensorFlow's


def places_problem(case: StrategyCase) -> Problem | None:
    """Return the problem with where the variable is stored, or with what was scheduled."""
    if not case["where"]:
        return {"got": case["got"], "mistake": MISTAKES["no variable"]}
    if not case["on a server"]:
        return {
            "expected": "/job:ps/...",
            "got": case["where"],
            "mistake": MISTAKES["on the chief"].format(**case),
        }
    if case["scheduled"] < case["wanted"]:
        return {
            "expected": case["wanted"],
            "got": case["scheduled"],
            "mistake": MISTAKES["not scheduled"].format(**case),
        }
    return None


def strategy_problem(case: StrategyCase) -> Problem | None:
    """Return the problem with the variable's values at the end."""
    if not case["looks"]:
        return None
    return {
        "expected": case["right"],
        "got": case["got"],
        "mistake": MISTAKES["strategy", case["looks"]],
    }


# ------------------------------------------------------------------ training, under the limit


def link_problem(answer: TrainCase) -> Problem | None:
    """Judge `answer`, which is what one rank reports about one layout.

    A worker's link is not checked.
    """
    if answer["bytes"] is None:
        return {"mistake": MISTAKES["place first"]}
    most, allowed = answer["bytes"], answer["allowed"]
    if most <= allowed:
        return None
    return {
        "rank": answer["rank"],
        "expected": f"at most {allowed} bytes in each step",
        "got": most,
        "mistake": MISTAKES["link"].format(workers=answer["workers"]),
    }


def link_evidence(answer: TrainCase) -> int:
    """Return the same number for all that a link may carry, and -1 if nothing was placed."""
    return -1 if answer["bytes"] is None else max(answer["bytes"], answer["allowed"])

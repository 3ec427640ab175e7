"""How the checks of unit 06 judge what the ranks report: right answers, and recognised mistakes.

Every `..._problem` returns None, or the details of a FAIL line: `rank`, `expected`, `got` and the
likely `mistake`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks import by_rank
from manyhands.checks.ddp.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from manyhands.checks.ddp.answers import (
        BackwardAnswer,
        Buckets,
        Cuts,
        Event,
        FlightCase,
        Started,
        StateCase,
        StepsCase,
        UnusedAnswer,
    )
    from manyhands.checks.report import Problem

ATOL = 1e-5


def far(a: Any, b: ArrayLike) -> bool:
    """Whether two lists of numbers differ by more than the tolerance, in length or in a value."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    return a.shape != b.shape or not np.all(np.abs(a - b) <= ATOL + 1e-5 * np.abs(b))


def is_plain(case: StateCase, i: int) -> bool:
    """Whether tensor i is a trainable parameter; else it is frozen, or a buffer."""
    return i < case["parameters"] and not case["frozen"][i]


def in_place(case: StateCase, plain: bool) -> bool:
    """Whether these tensors still lie in the memory in which they were."""
    return all(same for i, same in enumerate(case["same memory"]) if is_plain(case, i) == plain)


def state_problem(group: Mapping[int, StateCase], plain: bool) -> Problem | None:
    """Judge a group's trainable parameters (`plain`) after a broadcast, or its other tensors."""
    root = group[min(group)]
    everyone = [case["before"] for case in group.values()]
    for rank, case in group.items():
        if plain and not case["same objects"]:
            return {"rank": rank, "mistake": MISTAKES["new objects"]}
        if plain and not case["same flags"]:
            return {"rank": rank, "mistake": MISTAKES["other flags"]}
        for i, name in enumerate(case["names"]):
            if is_plain(case, i) != plain or not far(case["after"][i], root["before"][i]):
                continue
            mean = np.mean([before[i] for before in everyone], axis=0)
            if not far(case["after"][i], mean):
                mistake = "averaged state"
            elif not far(case["after"][i], case["before"][i]):
                mistake = (
                    "not broadcast"
                    if plain
                    else "buffer not broadcast"
                    if name in case["saved"]
                    else "not in state_dict"
                )
            else:
                close = np.allclose(case["after"][i], root["before"][i], rtol=0.01, atol=0.01)
                mistake = "rounded state" if close else "wrong root"
            return {
                "rank": rank,
                "expected": root["before"][i],
                "got": case["after"][i],
                "mistake": MISTAKES[mistake].format(name=name, rank=rank, root=min(group)),
                "picture": _first_numbers(
                    name,
                    group,
                    root["before"][i],
                    [member["after"][i] for member in group.values()],
                ),
            }
        if not in_place(case, plain):
            name = next(
                name
                for i, name in enumerate(case["names"])
                if is_plain(case, i) == plain and not case["same memory"][i]
            )
            return {"rank": rank, "mistake": MISTAKES["new memory"].format(name=name)}
    return None


def _first_numbers(
    name: str, group: Iterable[int], right: ArrayLike, got: Sequence[Any]
) -> by_rank.Picture | None:
    """A picture of the number in which the ranks of a group differ most from what is right.

    It is None if their shapes differ.
    """
    right, got = np.ravel(right), [np.ravel(tensor) for tensor in got]
    if not right.size or any(tensor.shape != right.shape for tensor in got):
        return None
    place = int(np.argmax(np.abs(np.array(got) - right).max(axis=0)))
    return by_rank.numbers(
        f"{name}, number {place}",
        float(right[place]),
        [float(tensor[place]) for tensor in got],
        list(group),
        within=1e-5,
    )


def cut(names: Sequence[str], bytes_of: Mapping[str, int], bucket_bytes: int) -> list[list[str]]:
    """The right answer, by name, from the last parameter to the first.

    A bucket is closed once it holds `bucket_bytes` or more.
    """
    buckets: list[list[str]] = [[]]
    held = 0
    for name in reversed(names):
        if held >= bucket_bytes:
            buckets, held = [*buckets, []], 0
        buckets[-1].append(name)
        held += bytes_of[name]
    return buckets


def cut_problem(bucket_bytes: int, got: list[list[str]], facts: Cuts) -> Problem | None:
    """Judge the learner's buckets of one model for one `bucket_bytes`."""
    expected = cut(facts["trainable"], facts["bytes"], bucket_bytes)
    if got == expected:
        return None
    seen = [name for bucket in got for name in bucket]
    fours = {name: 4 * numel for name, numel in facts["numel"].items()}
    if set(seen) - set(facts["trainable"]):
        mistake = "frozen in bucket"
    elif not all(got):
        mistake = "empty bucket"
    elif seen == facts["trainable"] and len(seen) > 1:
        mistake = "forward order"
    elif sorted(seen) != sorted(facts["trainable"]):
        mistake = "not every parameter"
    else:
        known = {
            "elements not bytes": (facts["numel"], bucket_bytes),
            "four bytes": (fours, bucket_bytes),
            "filled exactly": (facts["bytes"], bucket_bytes + 1),
        }
        frozen = [
            [name for name in bucket if name in facts["trainable"]]
            for bucket in cut(list(facts["bytes"]), facts["bytes"], bucket_bytes)
        ]
        same = [sorted(bucket) for bucket in got] == [sorted(bucket) for bucket in expected]
        mistake = next(
            (name for name, way in known.items() if got == cut(facts["trainable"], *way)),
            "order inside" if same else "other cut",
        )
        mistake = (
            "frozen counted"
            if mistake == "other cut" and got == [bucket for bucket in frozen if bucket]
            else mistake
        )
    return {
        "expected": str(expected),
        "got": str(got),
        "mistake": MISTAKES[mistake].format(bucket_bytes=bucket_bytes),
    }


def launch_problem(rank: int, case: FlightCase) -> Problem | None:
    """Judge what a rank sent for a bucket, and when."""
    expected = [["allreduce", sum(map(len, case["local"]))]]
    if case["sent"] != expected:
        reduced = [entry for entry in case["sent"] if entry[0] == "allreduce"]
        mistake = (
            "several messages"
            if len(reduced) > 1
            else "part of bucket"
            if reduced
            else "no all-reduce"
        )
        return {
            "rank": rank,
            "expected": str(expected),
            "got": str(case["sent"]),
            "mistake": MISTAKES[mistake],
        }
    if not case["at launch"]:
        return {"rank": rank, "mistake": MISTAKES["launch does not send"]}
    if case["blocked"]:
        return {"rank": case["members"][0], "mistake": MISTAKES["launch waits"].format(late=rank)}
    return None


def land_problem(group: Mapping[int, FlightCase]) -> Problem | None:
    """Judge the gradients and shapes that the ranks of a group have after a bucket has landed."""
    cases = list(group.values())
    for i, _ in enumerate(cases[0]["local"]):
        mean = np.mean([case["local"][i] for case in cases], axis=0)
        for rank, case in group.items():
            got = case["got"][i]
            if got is None or far(got, mean):
                drawn = (
                    None
                    if any(member["got"][i] is None for member in cases)
                    else _first_numbers(
                        "gradient", group, mean, [member["got"][i] for member in cases]
                    )
                )
                return {
                    "rank": rank,
                    "expected": mean,
                    "got": got,
                    "mistake": average_mistake(got, mean, case["local"][i], len(cases)),
                    "picture": drawn,
                }
            if case["shapes"][i] != cases[0]["shapes"][i]:
                return {
                    "rank": rank,
                    "expected": cases[0]["shapes"][i],
                    "got": case["shapes"][i],
                    "mistake": MISTAKES["shape"],
                }
    return None


def average_mistake(got: Any, expected: Any, local: Any, world_size: int) -> str:
    """What a wrong average looks like."""
    if got is None:
        return MISTAKES["no gradient"]
    expected = np.asarray(expected)
    if not far(got, expected * world_size):
        return MISTAKES["summed"].format(times=world_size)
    if not far(got, expected / world_size):
        return MISTAKES["divided twice"].format(times=world_size)
    if local is not None and not far(got, local):
        return MISTAKES["local"]
    if local is not None and not far(got, np.asarray(local) / world_size):
        return MISTAKES["local divided"]
    if world_size != 4 and not far(got, expected * world_size / 4):
        return MISTAKES["wrong world"].format(size=world_size)
    return MISTAKES["other"]


def blame_start(
    problems: Iterable[Problem | None], cases: Sequence[Started]
) -> list[Problem | None]:
    """The problems, with exercise 1 as their cause if a rank's model had a wrong start.

    It was then wrong before the first step.
    """
    name = next((case["start"] for case in cases if case["start"]), None)
    mistake: Problem | None = {"mistake": MISTAKES["start"].format(name=name)} if name else None
    return [{**problem, **mistake} if problem and mistake else problem for problem in problems]


def step_problem(rank: int, case: StepsCase, number: int) -> Problem | None:
    """Judge a rank's gradients in the step with this number."""
    step, size = case["steps"][number], len(case["members"])
    for name, expected in step["serial"].items():
        got = step["got"][name]
        if expected is None and got is None:
            continue
        if expected is None:
            return {
                "rank": rank,
                "expected": expected,
                "got": got,
                "mistake": MISTAKES["frozen"].format(name=name),
            }
        if got is None or far(got, expected):
            mistake = average_mistake(got, expected, step["local"][name], size)
            where = MISTAKES["second step" if number else "first step"].format(name=name, size=size)
            return {
                "rank": rank,
                "expected": expected,
                "got": got,
                "mistake": where + "\n" + mistake,
            }
    return None


def schedule(buckets: Buckets, ready: Iterable[str]) -> list[Event]:
    """What should happen in backward, if gradients are ready in this order.

    Each bucket is sent once it is complete, and not before the one in front of it.
    """
    events: list[Event] = []
    missing, launched = [{name for name, _ in bucket} for bucket in buckets], 0
    for name in ready:
        events.append(["ready", name])
        for names in missing:
            names.discard(name)
        while launched < len(buckets) and not missing[launched]:
            events.append(["sent", "allreduce", sum(size for _, size in buckets[launched])])
            launched += 1
    return [*events, ["end"]]


def overlap_problem(rank: int, case: StepsCase, number: int) -> Problem | None:
    """Judge when buckets were sent in a step, and whether backward waited for them."""
    problem = schedule_problem(rank, case["steps"][number]["events"], case["buckets"])
    if problem or not case["blocked"]:
        return problem
    return {
        "rank": case["members"][0],
        "mistake": MISTAKES["backward waits"].format(late=case["members"][-1]),
    }


def backwards_problem(rank: int, answer: BackwardAnswer) -> Problem | None:
    """Judge a backward pass in which the last bucket is ready first.

    All buckets must wait for the first one, and leave together with it.
    """
    problem = schedule_problem(rank, answer["events"], answer["buckets"])
    if not problem:
        return None
    right = schedule(answer["buckets"], ready_of(answer["events"]))
    sizes = [
        [event[2] for event in events if event[0] == "sent"] for events in (answer["events"], right)
    ]
    early = answer["events"][: answer["events"].index(["end"])]
    if sizes[0] != sizes[1] and sorted(sizes[0]) == sorted(sizes[1]):
        mistake = "bucket order"
    elif (
        sizes[0] == sizes[1]
        and any(event[0] == "sent" for event in early)
        and not too_early(answer["events"], right)
    ):
        mistake = "one at a time"
    else:
        return problem
    return {**problem, "mistake": MISTAKES[mistake]}


def too_early(events: Sequence[Event], expected: Sequence[Event]) -> bool:
    """Whether at some gradient more buckets had left than could be complete."""

    def left(events: Sequence[Event]) -> list[int]:
        return [
            sum(earlier[0] == "sent" for earlier in events[:i])
            for i, event in enumerate(events)
            if event[0] == "ready"
        ]

    return any(got > right for got, right in zip(left(events), left(expected), strict=True))


def ready_of(events: Sequence[Event]) -> list[str]:
    """The names of the parameters whose gradients were ready, in order."""
    return [event[1] for event in events if event[0] == "ready"]


def schedule_problem(rank: int, events: Sequence[Event], buckets: Buckets) -> Problem | None:
    """Judge the order in which gradients were ready and buckets were sent."""
    expected = schedule(buckets, ready_of(events))
    if events != expected:
        sent = [event for event in events if event[0] == "sent"]
        wanted = [event for event in expected if event[0] == "sent"]
        early = events[: events.index(["end"])] if ["end"] in events else events
        if sent == wanted and too_early(events, expected):
            mistake = "sent early"
        elif sent == wanted:
            mistake = (
                "sent late" if any(event[0] == "sent" for event in early) else "sent after backward"
            )
        elif len(sent) > len(wanted):
            mistake = "too many messages"
        else:
            mistake = "too few messages" if len(sent) < len(wanted) else "other buckets"
        return {
            "rank": rank,
            "expected": describe_events(expected),
            "got": describe_events(events),
            "mistake": MISTAKES[mistake].format(n=len(wanted)),
        }
    return None


def describe_events(events: Sequence[Event]) -> str:
    """A log of a backward pass in one line."""
    return ", ".join(" ".join(map(str, event)) for event in events)


def unused_problem(rank: int, answer: UnusedAnswer) -> Problem | None:
    """Judge a rank's gradients after a step in which not every parameter was used."""
    for name, expected in answer["serial"].items():
        got = answer["got"][name]
        if expected is None and (got is None or not np.any(got)):
            continue  # used by nobody: no gradient, or zeros
        if expected is None or got is None or far(got, expected):
            return {
                "rank": rank,
                "expected": expected,
                "got": got,
                "mistake": MISTAKES["unused"].format(name=name),
            }
    return None

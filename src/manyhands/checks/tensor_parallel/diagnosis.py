"""How the checks of unit 15 judge an answer, and which mistake a wrong answer looks like.

Every `..._problem` returns None or the details of a FAIL line, which are `rank`, `expected`, `got`
and the likely `mistake`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from manyhands.checks.tensor_parallel import cases
from manyhands.checks.tensor_parallel.messages import MISTAKES, PLACES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from manyhands.checks.report import Problem, Rank
    from manyhands.checks.tensor_parallel.answers import LayerCase, Piece, Refused
    from manyhands.checks.tensor_parallel.cases import Job, Layout, Mesh, Product, Program, Sizes

    C = TypeVar("C", bound=LayerCase)
    ProductCase = tuple[Product, Layout, Sizes]
    Pairs = list[tuple[str, float]]  # (axis, numbers), sorted
    # (case, table, for each rank [(right, numbers)] of output, gradient of a, of b)
    Run = tuple[ProductCase, list[list[str]], tuple[list[tuple[bool, list[Any]]], ...]]


def problem(
    key: str | tuple[str, str],
    expected: Any = None,
    got: Any = None,
    rank: Rank = None,
    **words: Any,
) -> Problem:
    """Return the details of a FAIL line, whose text may also name `got` and `rank`."""
    text = MISTAKES[key].format(got=got, rank=rank, **words)
    return {"rank": rank, "expected": expected, "got": got, "mistake": text}


def of(
    what: str, looks: str, expected: Any = None, got: Any = None, rank: Rank = None, **words: Any
) -> Problem:
    """Return the details of a FAIL line for a mistake in one of several places.

    If a text for this place exists, it is used, and otherwise the text for all places.
    """
    key = (what, looks) if (what, looks) in MISTAKES else looks
    return problem(key, expected, got, rank, what=PLACES.get(what, what), **words)


# --- 1 to 4: layers on the ranks ------------------------------------------------------------------


def mark_small_groups(found: list[C]) -> list[C]:
    """Mark what is wrong in a smaller group only as wrong because of the group.

    It must have no known reason, and all numbers of the layer must be right with all ranks.
    """
    most = max(case["size"] for case in found)
    wrong = {
        case["what"]
        for case in found
        if case["size"] == most
        and not all(value["right"] for value in (case["value"], *case["gradients"]))
    }
    for case in found:
        for value in (case["value"], *case["gradients"]):
            if case["what"] not in wrong and not value["right"] and value["looks"] == "other":
                value["looks"] = "other in a group"
    return found


def value_problem(case: LayerCase) -> Problem | None:
    """Judge the output. `case` is what one rank reports of one run (`compare_ranks.try_out`)."""
    value = case["value"]
    at: dict[str, Any] = {key: case[key] for key in ("rank", "size", "members")}
    if not value["right"]:
        shapes = value["looks"] == "shape"
        expected, got = (
            (value["wanted shape"], value["shape"])
            if shapes
            else (value["wanted"], value["sample"])
        )
        return of(case["what"], value["looks"], expected, got, **at)
    touched = [name for name in case["touched"] if name != "gradient"]
    return of(case["what"], "touched", name=touched[0], **at) if touched else None


def gradients_problem(case: LayerCase) -> Problem | None:
    """Judge the gradients of one run on a rank, and whether backward could begin."""
    at: dict[str, Any] = {key: case[key] for key in ("rank", "size", "members")}
    if case["detached"]:
        return of(case["what"], "detached", **at)
    if case["value"]["shape"] != case["value"]["wanted shape"]:
        return of(case["what"], "no backward", **at)
    for gradient in case["gradients"]:
        if not gradient["right"]:
            place = f"{case['what']} {gradient['name']}"
            looks = (
                gradient["looks"]
                if (place, gradient["looks"]) in MISTAKES
                else "gradient " + gradient["looks"]
            )
            if not case["value"]["right"] and looks in (
                "gradient other",
                "gradient other in a group",
                "gradient not finite",
            ):
                return problem(
                    "gradient follows",
                    gradient["wanted"],
                    gradient["sample"],
                    case["rank"],
                    name=gradient["name"],
                )
            return of(
                place, looks, gradient["wanted"], gradient["sample"], name=gradient["name"], **at
            )
    return of(case["what"], "gradient touched", **at) if "gradient" in case["touched"] else None


def calls_problem(case: LayerCase) -> Problem | None:
    """Judge the collective calls of one run and the bytes that they send."""
    sent = case["forward"], case["backward"]
    for way, got, right in zip(("forward", "backward"), sent, case["sums"], strict=True):
        if got != right:
            looks = (
                "many"
                if got[0] > right[0]
                else "few"
                if got[0] < right[0]
                else "fewer bytes"
                if got[1] < right[1]
                else "bytes"
            )
            expected, actual = (
                [f"{calls} call{'s' * (calls != 1)}", f"{nbytes} bytes"]
                for calls, nbytes in (right, got)
            )
            return of(
                f"{case['what']} {way}",
                looks,
                expected,
                actual,
                case["rank"],
                way=way,
                size=case["size"],
            )
    return None


def sent_problem(case: LayerCase) -> Problem | None:
    """Return the same for exercise 8, where sums may be packed into fewer calls."""
    (_, forward), (_, backward) = case["forward"], case["backward"]
    (_, may), (_, must) = case["sums"]
    for way, got, right, looks in (
        ("forward", forward, may, "more" if forward > may else None),
        (
            "backward",
            backward,
            must,
            "more" if backward > must else "less" if backward < must else None,
        ),
    ):
        if looks:
            return problem(f"loss {way} {looks}", f"{right} bytes", f"{got} bytes", case["rank"])
    return None


def sent_evidence(case: LayerCase) -> list[int]:
    """Return what the grader compares.

    It is the same for all answers that send no more than they may.
    """
    return [max(case["forward"][1], case["sums"][0][1]), case["backward"][1]]


def evidence(case: LayerCase) -> dict[str, list[Any]]:
    """What the grader compares, by criterion."""
    unspoilt = [
        not any(name != "gradient" for name in case["touched"]),
        "gradient" not in case["touched"],
    ]
    return {
        "values": [case["value"]["sample"], unspoilt[0]],
        "gradients": [
            [gradient["sample"] for gradient in case["gradients"]],
            unspoilt[1],
            case["detached"],
        ],
        "calls": [case["forward"], case["backward"]],
    }


# --- 4: the rank's heads --------------------------------------------------------------------------


def pieces_problem(case: Piece) -> Problem | None:
    """Judge the pieces that the learner's function has cut for a rank."""
    for result in case["results"]:
        if not result["right"]:
            shapes = result["looks"] in ("shape", "whole")
            expected, got = (
                (result["wanted shape"], result["shape"])
                if shapes
                else (result["wanted"], result["sample"])
            )
            words = {"size": case["size"], "heads": case["heads"]}
            return of(result["name"], result["looks"], expected, got, case["rank"], **words)
    return (
        problem("cut in place", rank=case["rank"], name=case["touched"][0])
        if case["touched"]
        else None
    )


def memory_problem(case: Piece) -> Problem | None:
    """Judge how much memory a rank's pieces keep, and whose it is."""
    for result, (held, needed, shared) in zip(case["results"], case["held"], strict=True):
        if held < 0:
            return of(
                result["name"],
                result["looks"],
                rank=case["rank"],
                size=case["size"],
                heads=case["heads"],
            )
        if held > needed:
            return problem(
                "a view", needed, held, case["rank"], what=PLACES[result["name"]], needed=needed
            )
        if shared:
            return problem(
                "shared", rank=case["rank"], what=PLACES[result["name"]], size=case["size"]
            )
    return None


def refused_problem(case: Refused) -> Problem | None:
    """Judge what happened with heads that cannot be divided."""
    if case["error"] == "ValueError":
        return None
    key = "accepted" if case["error"] is None else "other error"
    words: dict[str, Any] = {name: case[name] for name in ("heads", "size", "error")}
    return problem(key, "ValueError", case["error"] or case["answer"], **words)


# --- 5: reductions --------------------------------------------------------------------------------


def table_of(answer: Any, mesh: Mesh) -> list[list[str]] | None:
    """The learner's three collections of axes as lists, or None if the answer is anything else."""
    try:
        table = [sorted(str(axis) for axis in axes) for axes in answer]
    except Exception:  # noqa: BLE001 - a learner's object may do anything here
        return None
    return (
        table if len(table) == 3 and all(axis in mesh for axes in table for axis in axes) else None
    )


def table_problems(runs: Iterable[Run], places: Sequence[int]) -> list[Problem]:
    """The problems of the products whose numbers are wrong.

    Answers with an axis too many come first, since they say more, and the rarest case comes last.

    runs: [(case, table, for each rank [(right, numbers)] of output, gradient of a, of b)].
    """
    problems = []
    for case, table, ranks in runs:
        for place in places:
            if not all(rank[place][0] for rank in ranks):
                problems.append(
                    _table_problem(
                        case,
                        cases.rule(case[0][0], case[0][1], case[0][2], case[1])[place],
                        table[place],
                        place,
                    )
                )
    return [details for _, details in sorted(problems, key=lambda entry: entry[0])]


def _table_problem(
    case: ProductCase, wanted: list[str], got: list[str], place: int
) -> tuple[tuple[bool, bool], Problem]:
    (a, b, out), layout, _ = case
    words = {"case": f"{a}, {b} -> {out} with {layout}"}
    if place == 0:
        looks = (
            "axes of out"
            if set(got) & cases.axes(out, layout)
            else (
                "forward many"
                if set(got) - set(wanted)
                else "twice forward"
                if len(set(got)) < len(got)
                else "forward few"
            )
        )
    else:
        mine, other = ((a, b), (b, a))[place - 1]
        words["operand"] = "ab"[place - 1]
        missing = set(wanted) - set(got)
        looks = (
            "own axes"
            if set(got) & cases.axes(mine, layout)
            else (
                "twice"
                if len(set(got)) < len(got)
                else (
                    "neither"
                    if set(got) - cases.axes(other, layout)
                    else (
                        "summed away"
                        if missing and not missing & cases.axes(out, layout)
                        else "backward few"
                    )
                )
            )
        )
    return (not set(got) - set(wanted), looks == "summed away"), problem(
        looks, wanted, got, **words
    )


def refusal(function: Callable[..., Any], product: Product, layout: Layout) -> str | None:
    """The name of the exception that the learner's function raises, or None if it raises none."""
    try:
        function(*product, dict(layout))
    except Exception as error:  # noqa: BLE001 - a learner's code may raise anything
        return type(error).__name__
    return None


def refusal_problem(case: tuple[Product, Layout, bool], error: str | None) -> Problem | None:
    """Judge whether impossible layouts, and only these, are refused by a ValueError."""
    (a, b, out), layout, possible = case
    if error == (None if possible else "ValueError"):
        return None
    looks = "refused" if possible else "layout accepted" if error is None else "layout other error"
    return problem(
        looks, None if possible else "ValueError", error, case=f"{a}, {b} -> {out} with {layout}"
    )


# --- 6: price -------------------------------------------------------------------------------------


def pairs(answer: Any) -> Pairs | None:
    """The learner's [(axis, numbers)], sorted, or None if the answer is anything else."""
    try:
        return sorted((str(axis), float(numbers)) for axis, numbers in answer)
    except Exception:  # noqa: BLE001 - a learner's object may do anything here
        return None


def price_evidence(name: str, answer: Pairs | None) -> Any:
    """Return what the grader compares for this criterion."""
    return answer if answer is None or name == "numbers" else [axis for axis, _ in answer]


def axes_problems(
    asked: Sequence[Program],
    answers: Sequence[Pairs | None],
    seen: Sequence[Sequence[tuple[str, int]]],
) -> list[Problem]:
    """The problems of the programs whose all-reduces differ.

    Each names the mistake that explains all of them.
    """
    given = [answer for answer in answers if answer is not None]
    if len(given) < len(answers):
        return [problem("no pairs")]
    got_axes, wanted_axes = (
        [[axis for axis, _ in sorted(pairs)] for pairs in each] for each in (given, seen)
    )
    wrong = [
        (case, got, wanted)
        for case, got, wanted in zip(asked, got_axes, wanted_axes, strict=True)
        if got != wanted
    ]
    if not wrong:
        return []
    explain = [
        {key for key, axes in _ways(case, wanted).items() if got == sorted(axes)}
        for case, got, wanted in wrong
    ]
    looks = min(set.intersection(*explain), default="axes other")
    return [
        problem(looks, wanted, got, case=f"{layout} on {mesh}, {len(programme)} products")
        for (programme, _, layout, mesh), got, wanted in wrong
    ]


def _ways(case: Program, wanted: list[str]) -> dict[str, list[str]]:
    """Return {mistake: the axes that it names}."""
    programme, _, layout, mesh = case
    reduced = list(cases.reduced(programme, layout))
    calls = [(way, axis, dims) for way, axis, dims in reduced if mesh[axis] > 1]
    weights = [b for _, b, _ in programme]
    return {
        "forward only": [axis for way, axis, _ in calls if way == "forward"],
        "backward only": [axis for way, axis, _ in calls if way == "backward"],
        "no outputs backward": [
            axis for way, axis, dims in calls if way == "forward" or dims in weights
        ],
        "one rank": [axis for _, axis, _ in reduced],
        "data": wanted
        + [
            axis
            for axis in cases.rule(programme[0][0], programme[0][1], programme[0][2], layout)[1]
            if mesh[axis] > 1
        ],
    }


def numbers_problem(
    case: Program, answer: Pairs | None, seen: Sequence[tuple[str, int]]
) -> Problem | None:
    """Judge how many numbers each all-reduce has."""
    if answer is None:
        return problem("no pairs")
    if answer == sorted(seen):
        return None
    programme, sizes, layout, mesh = case
    calls = [call for call in cases.reduced(programme, layout) if mesh[call[1]] > 1]
    whole = sorted((axis, cases.numbers(dims, sizes, {}, mesh)) for _, axis, dims in calls)
    looks = "whole" if answer == whole else "numbers other"
    return problem(
        looks,
        [f"{axis} {n}" for axis, n in sorted(seen)],
        [f"{axis} {n:g}" for axis, n in answer],
        case=f"{layout} on {mesh}, sizes {sizes}",
    )


# --- 7: choose ------------------------------------------------------------------------------------


def layout_of(answer: Any, job: Job) -> Layout | None:
    """Return the learner's layout without dimensions that are on no axis.

    Return None if it is not a layout for this job.
    """
    _, sizes, mesh, _ = job
    if not isinstance(answer, dict):
        return None
    layout = {dimension: axis for dimension, axis in answer.items() if axis is not None}
    return layout if layout.keys() <= sizes.keys() and set(layout.values()) <= mesh.keys() else None


def layout_problems(job: Job, layout: Layout | None) -> dict[str, Problem | None]:
    """Return {criterion: problem or None}."""
    programme, sizes, mesh, memory = job
    judgement: dict[str, Problem | None] = dict.fromkeys(("fits", "cheapest"))
    if layout is None:
        return {"fits": problem("no layout"), "cheapest": problem("unfit")}
    words: dict[str, Any] = {"layout": layout, "mesh": mesh}
    if not all(cases.possible(a, b, layout) for a, b, _ in programme):
        judgement["fits"] = problem("on one axis", **words)
    elif not cases.runs_well(programme, sizes, layout, mesh):
        judgement["fits"] = problem("does not divide", **words, sizes=sizes)
    elif (need := cases.held_bytes(programme, sizes, layout, mesh)) > memory:
        weights = cases.held_bytes(programme, sizes, layout, mesh, kept=()) > memory
        judgement["fits"] = problem(
            "weights too large" if weights else "too large", f"at most {memory}", need, **words
        )
    if judgement["fits"]:
        return {**judgement, "cheapest": problem("unfit")}
    price, best = cases.sent_bytes(programme, sizes, layout, mesh), cheapest(job)
    if price > best[0] * (1 + 1e-9):
        judgement["cheapest"] = problem("dearer", best[0], price, **words, best=best[1])
    return judgement


def all_layout_problems(
    jobs: Sequence[Job], answers: Sequence[Layout | None]
) -> list[dict[str, Problem | None]]:
    """[{criterion: problem or None}] of all jobs.

    If a trap explains at least half of the wrong answers, the problems name it.
    """
    judgements = [layout_problems(job, layout) for job, layout in zip(jobs, answers, strict=True)]
    wrong = [
        (job, layout)
        for job, layout, judgement in zip(jobs, answers, judgements, strict=True)
        if any(judgement.values())
    ]
    explains = (
        {
            trap: [
                sum(_thought(trap, *pair) for pair in few)
                for few in (wrong, list(zip(jobs, answers, strict=True)))
            ]
            for trap in cases.TRAPS
        }
        if wrong
        else {}
    )
    named = max(
        (trap for trap, (of_wrong, _) in explains.items() if 2 * of_wrong >= len(wrong)),
        # the one that explains most answers
        key=lambda trap: explains[trap][1],
        default=None,
    )
    for judgement in judgements if wrong and named else ():
        for name, details in judgement.items():
            if details and details["mistake"] != MISTAKES["unfit"]:
                judgement[name] = {
                    **details,
                    "mistake": f"{details['mistake']}\n{MISTAKES[f'thought {named}']}",
                }
    return judgements


def _thought(trap: str, job: Job, layout: Layout | None) -> bool:
    """Whether this trap leads to this layout."""
    seen = cases.seen_by(trap, *job)
    least = min((price for price, _ in seen), default=None)
    return any(price == least and way == layout for price, way in seen)


def cheapest(job: Job) -> tuple[float, Layout]:
    """(bytes, layout) of a layout that fits and sends the fewest bytes."""
    return min(cases.seen_by(None, *job), key=lambda priced: priced[0])


def layout_evidence(job: Job, layout: Layout | None) -> dict[str, float]:
    """Return what the grader compares.

    It is one value for every layout that fits, and the bytes that the layout sends.
    """
    programme, sizes, mesh, memory = job
    if layout is None or not cases.runs_well(programme, sizes, layout, mesh):
        return {"fits": -1.0, "cheapest": -1.0}
    return {
        "fits": max(cases.held_bytes(programme, sizes, layout, mesh), memory),
        "cheapest": cases.sent_bytes(programme, sizes, layout, mesh),
    }

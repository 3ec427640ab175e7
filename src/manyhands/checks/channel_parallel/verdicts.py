"""How the checks of unit 13 judge what the ranks have told: which mistake a wrong answer looks like, and how many bytes are right.

Every `..._problem` returns None, or the details of a FAIL line: `rank`, `expected`, `got` and the likely `mistake`.
"""

import math

from manyhands.checks.channel_parallel.words import MISTAKES

ATOL = 1e-7
DOUBLE, SINGLE = 8, 4  # bytes: the experiments run in float64, predictions are about float32


def value_problem(rank, result, topic, kind="any", **more):
    """The problem with one comparison, told in the words of `topic` ("part out weight", "in x", ...), else of its `kind`."""
    if result["right"]:
        return None
    looks = result["looks"]
    text = MISTAKES.get((topic, looks)) or MISTAKES.get((kind, looks)) or MISTAKES[kind, "other"]
    expected, got = result["wanted"], result["sample"]
    if looks == "shape":
        expected, got = result["wanted shape"], result["shape"]
    return {"rank": rank, "expected": expected, "got": got, "mistake": text.format(name=result["name"], **more)}


def part_problem(case):
    """The first wrong cut of exercise 1."""
    for result in case["results"]:
        topic = f"part {case['split']} {result['name']}"
        problem = value_problem(case["rank"], result, topic, size=case["size"], split=case["split"])
        if problem:
            return problem
    return None


def held_problem(case):
    for trained, parameter, shared, more_bytes in case["held"]:
        if not trained:
            return {"rank": case["rank"], "mistake": MISTAKES["not a leaf"]}
        if not parameter:
            return {"rank": case["rank"], "expected": "nn.Parameter", "got": "torch.Tensor", "mistake": MISTAKES["no parameter"]}
        if shared or more_bytes:
            return {"rank": case["rank"], "mistake": MISTAKES["a view" if more_bytes else "shared"]}
    return None


def output_problem(case, topic):
    """The first thing wrong with a forward pass: its values, or that backward cannot start from it."""
    problem = value_problem(case["rank"], case["results"][0], topic, size=case["size"])
    if problem is None and case["detached"]:
        return {"rank": case["rank"], "mistake": MISTAKES["detached"]}
    return problem


def gradients_problem(case, topic):
    """The first wrong gradient; `case["gradients"]` is empty where backward could not start."""
    for result in case["gradients"]:
        problem = value_problem(case["rank"], result, f"{topic} {result['name']}", "gradient", size=case["size"])
        if problem:
            return problem
    if not case["gradients"]:
        return {"rank": case["rank"], "mistake": MISTAKES["detached" if case["detached"] else "no backward"]}
    return None


# ------------------------------------------------------------------ bytes

def sum_bytes(numel, size, itemsize=DOUBLE):
    """Bytes that all ranks together send for a sum that everyone gets: a reduce-scatter and an all-gather, or a reduce and a broadcast."""
    return 2 * (size - 1) * numel * itemsize


def join_bytes(numel, size, itemsize=DOUBLE):
    """For parts that everyone gets from everyone; `numel` is that of all parts together."""
    return (size - 1) * numel * itemsize


def around(total, size):
    """[lowest, highest] that counts as this number: what is cut into one piece per rank may be rounded up."""
    slack = 2 * DOUBLE * size * size
    return total - slack, total + slack


NOTHING = (0, 0)


def totals(cases):
    """[(case of the first rank, sent forward or None, sent backward or None)], the ranks of one experiment added up."""
    groups = {}
    for case in cases:
        groups.setdefault((tuple(case["members"]), case.get("which"), case.get("number")), []).append(case)
    found = []
    for group in groups.values():
        backward = None if any(case["backward"] is None for case in group) else sum(case["backward"] for case in group)
        shapes = any(case["results"][0]["looks"] == "shape" for case in group)  # of an output of another size, bytes say nothing
        found.append((group[0], None if shapes else sum(case["forward"] for case in group), backward))
    return found


def bytes_problem(total, limits, topic, direction):
    """A number of bytes outside its limits; `topic` is "out", "in", "pair", "copy", "sum" or "join"."""
    if total is None:
        return {"mistake": MISTAKES["no backward"]}
    low, high = limits
    if low <= total <= high:
        return None
    how = "much" if total > high else "little"
    text = MISTAKES.get((f"bytes {topic} {direction}", how)) or MISTAKES["bytes", how]
    expected = f"{low} bytes" if low == high else f"between {low} and {high} bytes, all ranks together"
    return {"expected": expected, "got": f"{total} bytes", "mistake": text.format(direction=direction, topic=topic)}


def evidence(total, limits):
    """What the grader compares: the same for every total inside the limits, another for each outside."""
    return [-1, -1] if total is None else [min(total, limits[0]), max(total, limits[1])]


def operator_limits(case):
    whole, size = case["numel"], case["size"]
    summed, joined = around(sum_bytes(whole, size), size), around(join_bytes(whole, size), size)
    return {"copy": (NOTHING, summed), "sum": (summed, NOTHING), "join": (joined, NOTHING)}[case["which"]]


def layer_limits(case, split):
    """(forward, backward). In backward of the out split only x's gradient travels: each rank has its slice of dL/dy already."""
    numel, size = case["numel"], case["size"]
    if split == "in":
        return around(sum_bytes(numel["y"], size), size), NOTHING
    return around(join_bytes(numel["y"], size), size), around(sum_bytes(numel["x"], size), size)


def pair_limits(case):
    numel, size = case["numel"], case["size"]
    return around(sum_bytes(numel["y"], size), size), around(sum_bytes(numel["x"], size), size)


# ------------------------------------------------------------------ predicted bytes

def moved_problem(case, sent):
    """`sent` is what the ledger has measured on all ranks together."""
    got, size, way = case["predicted"], case["size"], case["way"]
    number = isinstance(got, (int, float))
    if number and got == sent:
        return None
    join = {name: join_bytes(math.prod(case[name]), size, SINGLE) for name in ("x", "weight", "y")}
    known = {"elements": sent / SINGLE, "sent to itself": sent * size / (size - 1), "one rank": sent / size, "direct": sent * size / 2,
             "double": sent * 2, "half": sent / 2}
    if way == "out":
        known |= {"forward only": join["y"], "backward only": 2 * join["x"], "joined, not summed": join["x"] + join["y"],
                  "summed, not joined": 2 * (join["x"] + join["y"]), "direct": join["y"] + size * join["x"]}
    if way == "pair":
        known["forward only"] = 2 * join["y"]
    looks = next((name for name, value in known.items() if number and abs(got - value) < 0.5), "other")
    if looks == "elements" and size == SINGLE:  # numbers, and one rank of four: which of the two cannot be told
        looks = "quarter"
    return {"expected": sent, "got": got if number else repr(got), "mistake": MISTAKES["moved", looks].format(way=way, size=size)}


def largest_side(batch, c_in, kernel):
    """The largest side whose output is not larger than the weight, per output channel: batch * side^2 <= c_in * kernel^2."""
    return math.isqrt(c_in * kernel * kernel // batch)


def side_problem(side):
    batch, c_in, c_out, kernel = side["asked"]
    right = largest_side(batch, c_in, kernel)
    if side["got"] == right and isinstance(side["got"], int):
        return None
    known = {right + 1: "one too many", right - 1: "one too few", math.isqrt(c_in * kernel * kernel): "batch forgotten", math.isqrt(c_in // batch): "kernel forgotten",
             c_in * kernel * kernel // batch: "area", math.isqrt(c_out * kernel * kernel // batch): "output channels"}
    looks = known.get(side["got"], "other") if isinstance(side["got"], (int, float)) else "other"
    if looks == "other" and isinstance(side["got"], float):
        looks = "not whole"
    return {"expected": right, "got": side["got"], "mistake": MISTAKES["side", looks].format(batch=batch, c_in=c_in, c_out=c_out, kernel=kernel)}

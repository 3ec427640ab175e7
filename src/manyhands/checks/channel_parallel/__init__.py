"""Checks of unit 13, channel-parallel convolution: what the notebook's kernel asks of the ranks, and how it judges the answers.

Each check cell calls one of the public functions with the cluster and the names of what the learner has defined on the ranks.
The experiments run there (`ranks`) on communicators with a short time-out: ranks that wait for each other in vain
get an exception after it, which becomes a FAIL line here.
"""

from manyhands.checks import seed
from manyhands.checks.channel_parallel import verdicts
from manyhands.checks.channel_parallel.words import HINTS, MISTAKES, TEXTS
from manyhands.checks.on_ranks import RankReport, first

__all__ = ["HINTS", "in_split", "moved", "operators", "out_split", "pair", "part"]

PATIENCE_S = 20  # longer than the time-out of the experiments' communicators, which says more


class _Check(RankReport):
    def __init__(self, name, cluster, points):
        super().__init__(name, cluster, points, TEXTS, MISTAKES)

    def ran(self, experiment, *args):
        """The values by rank, or None after a FAIL line for each criterion."""
        return self.experiment("channel_parallel.ranks", experiment, *args, patience_s=PATIENCE_S)

    def told(self, name, values, problem):
        """One criterion: passed where there is no problem."""
        self.judge(name, not problem, values=values, atol=verdicts.ATOL, rtol=verdicts.ATOL, **problem)


def _samples(results):
    return [[result["right"], result["sample"]] for result in results]


# ------------------------------------------------------------------ 1: part

def part(cluster, function):
    """Check `function(conv, split, rank, size)`: this rank's weight and bias, leaves with memory of their own."""
    report = _Check("part", cluster, {"cut": 1, "memory": 1})
    answers = report.ran("part", function, seed())
    if answers is not None:
        cases = answers[0]
        report.told("cut", [_samples(case["results"]) for case in cases], first(verdicts.part_problem(case) for case in cases))
        problem = first(verdicts.held_problem(case) for case in cases)
        kept = [[case["whole"], [[trained, memory - values] for trained, values, memory in case["held"]]] for case in cases]
        report.told("memory", kept, problem)
    report.show()


# ------------------------------------------------------------------ 2: operators

def operators(cluster, copy, total, join):
    """Check the three operators `(x, c)`: forward, backward, and what each of them moves."""
    report = _Check("operators", cluster, {"forward": 1, "backward": 2, "bytes": 1})
    answers = report.ran("operators", copy, total, join, seed())
    if answers is not None:
        cases = [case for answer in answers for case in answer]
        problem = first(verdicts.output_problem(case, case["which"]) for case in cases)
        report.told("forward", [[_samples(case["results"][:1]), case["detached"]] for case in cases], problem)
        for case in cases:
            case["gradients"] = case["results"][1:]
        problem = first(verdicts.gradients_problem(case, case["which"]) for case in cases)
        report.told("backward", [_samples(case["gradients"]) for case in cases], problem)
        _judge_bytes(report, cases, verdicts.operator_limits, lambda case: case["which"])
    report.show()


def _judge_bytes(report, cases, limits_of, topic_of):
    problems, values = [], []
    for case, forward, backward in verdicts.totals(cases):
        for direction, total, limits in zip(("forward", "backward"), (forward, backward), limits_of(case)):
            problems.append(verdicts.bytes_problem(total, limits, topic_of(case), direction))
            values.append(verdicts.evidence(total, limits))
    report.told("bytes", values, first(problems))


# ------------------------------------------------------------------ 3, 4, 5: layers

def out_split(cluster, function):
    """Check `function(x, weight, bias, c, stride, padding)`: a layer cut by output channels."""
    _layer("out-split", cluster, function, "out")


def in_split(cluster, function):
    """Check `function(x, weight, bias, c, stride, padding)`: a layer cut by input channels."""
    _layer("in-split", cluster, function, "in")


def _layer(name, cluster, function, split):
    report = _Check(name, cluster, {"values": 1, "gradients": 1, "bytes": 1})
    answers = report.ran("layer", function, split, seed())
    if answers is not None:
        _judge_layer(report, answers, split, lambda case: verdicts.layer_limits(case, split))
    report.show()


def _judge_layer(report, answers, topic, limits_of):
    cases = [case for answer in answers for case in answer]
    problem = first(verdicts.output_problem(case, topic) for case in cases)
    report.told("values", [[_samples(case["results"]), case["detached"]] for case in cases], problem)
    problem = first(verdicts.gradients_problem(case, topic) for case in cases)
    report.told("gradients", [_samples(case["gradients"]) for case in cases], problem)
    _judge_bytes(report, cases, limits_of, lambda case: topic)


def pair(cluster, function):
    """Check `function(x, first, second, c, padding)`: out split, ReLU, in split, and one sum in all."""
    report = _Check("pair", cluster, {"values": 1, "gradients": 1, "bytes": 1})
    answers = report.ran("pair", function, seed())
    if answers is not None:
        _judge_layer(report, answers, "pair", verdicts.pair_limits)
    report.show()


# ------------------------------------------------------------------ 6: moved

def moved(cluster, function, side):
    """Check `function(way, x, weight, y, size)` against what is measured, and `side(batch, c_in, c_out, kernel)`."""
    report = _Check("moved", cluster, {"bytes": 1, "side": 1})
    answers = report.ran("moved", function, side, seed())
    if answers is not None:
        by_rank = [case for answer in answers for case in answer["cases"]]
        cases = {(case["size"], case["way"]): case for case in by_rank}
        sent = {key: sum(case["sent"] for case in by_rank if (case["size"], case["way"]) == key) for key in cases}
        problem = first(verdicts.moved_problem(case, sent[key]) for key, case in cases.items())
        report.told("bytes", [case["predicted"] for case in cases.values()], problem)
        sides = answers[0]["sides"]
        report.told("side", [one["got"] for one in sides], first(verdicts.side_problem(one) for one in sides))
    report.show()

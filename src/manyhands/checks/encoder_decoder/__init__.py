"""Checks of unit 12, encoder and decoder across ranks: what the notebook's kernel asks of the ranks, and how it judges the answers.

Each check cell calls one of the public functions with the cluster and the names of what the learner has defined on the ranks. The
experiments run there (`ranks`), in communicators with a short time-out, so a call that waits in vain becomes a FAIL
line and the ranks go on. A hang outside of them ends after PATIENCE_S, and the cluster heals.
"""

from manyhands.checks import seed
from manyhands.checks.encoder_decoder import verdicts
from manyhands.checks.encoder_decoder.words import HINTS, MISTAKES, TEXTS
from manyhands.checks.on_ranks import RankReport

__all__ = ["HINTS", "hybrid", "loss", "ragged", "split", "training"]

PATIENCE_S = 25  # longer than the communicators' own time-out, which speaks first
ROLES = ("encoder", "decoder")


class _Check(RankReport):
    """A report whose criteria all fail where a call of the experiment did not go through."""

    def __init__(self, name, cluster, points):
        super().__init__(name, cluster, points, TEXTS, MISTAKES)

    def answers(self, experiment, *args):
        """Run it on all ranks; the answers by rank, or None after a FAIL line for each criterion."""
        answers = self.experiment("encoder_decoder.ranks", experiment, *args, seed(), patience_s=PATIENCE_S)
        return None if answers and self.all_fail(verdicts.stopped(answers)) else answers

    def all_fail(self, problem):
        """Every criterion fails with the problem, if there is one; returns whether there is."""
        for name in self.points if problem else ():
            self.judge(name, False, **problem)
        return bool(problem)

    def cases(self, number, experiment, *args):
        """Several cases of an experiment, one after the other; [(rank, answer)] of all, or None as soon as one did not go through."""
        found = []
        for case in range(number):
            answers = self.answers(experiment, *args, case)
            if answers is None:
                return None
            found += enumerate(answers)
        return found

    def first(self, name, problems, values):
        """A criterion that fails with the first of the problems, and passes if there is none."""
        problem = next((problem for problem in problems if problem), None)
        self.judge(name, problem is None, values=values, atol=verdicts.ATOL, rtol=verdicts.ATOL, **(problem or {}))


def _sample(named):
    """A few of each parameter's numbers, as evidence."""
    return [numbers and [*numbers[:2], numbers[-1], sum(numbers)] for numbers in named.values()]


def ragged(cluster, function):
    """Check `function(rnn, sequences, state)`: outputs and state of sequences of different lengths."""
    report = _Check("ragged", cluster, {"outputs": 1, "state": 1})
    answers = report.answers("ragged", function)
    if answers is not None:
        cases = answers[0]
        report.first("outputs", map(verdicts.outputs_problem, cases), [[shape, numbers[:2]] for case in cases for shape, numbers in case["outputs"]])
        report.first("state", map(verdicts.state_problem, cases), [[shape, numbers] for case in cases for shape, numbers in case["state"]])
    report.show()


def loss(cluster, function):
    """Check `function(scores, targets, divisor)`: the loss of a ragged batch."""
    report = _Check("loss", cluster, {"mean": 1, "divisor": 1})
    answers = report.answers("loss", function)
    if answers is not None:
        answer = answers[0]
        report.first("mean", [verdicts.mean_problem(answer)], [answer["got"], answer["gradient"]])
        report.first("divisor", [verdicts.divisor_problem(answer)], [answer["divided"]])
    report.show()


def split(cluster, encoder_step, decoder_step):
    """Check the two halves of a step: loss, gradients, and what crosses between them."""
    report = _Check("split", cluster, {"loss": 1, "decoder": 1, "encoder": 1, "messages": 1})
    cases = report.cases(2, "split", encoder_step, decoder_step)
    if cases is not None and not report.all_fail(verdicts.unclaimed(cases)):
        report.first("loss", (verdicts.loss_problem(*case) for case in cases), [case["loss"] for _, case in cases if "loss" in case])
        for role in reversed(ROLES):
            report.first(role, (verdicts.gradient_problem(*case, role) for case in cases),
                         [_sample(case["got"]) for _, case in cases if case["role"] == role])
        report.first("messages", (verdicts.traffic_problem(*case) for case in cases),
                     [[min(case["sent"][0], 2) == 0 or case["sent"][0] > 2, case["sent"][1]] for _, case in cases])
    report.show()


def training(cluster, train):
    """Check `train(module, c, batches, lr)`: the weights of both modules after four steps."""
    report = _Check("training", cluster, {"decoder": 1, "encoder": 1})
    answers = report.answers("training", train)
    if answers is not None:
        ranked = list(enumerate(answers))
        report.first("decoder", (problem for rank, answer in ranked for problem in (verdicts.weights_problem(rank, answer, "decoder"),
                                                                                    verdicts.losses_problem(rank, answer))),
                     [[_sample(answer["got"]), answer["losses"]] for answer in answers if answer["role"] == "decoder"])
        report.first("encoder", (verdicts.weights_problem(rank, answer, "encoder") for rank, answer in ranked),
                     [_sample(answer["got"]) for answer in answers if answer["role"] == "encoder"])
    report.show()


def hybrid(cluster, step):
    """Check `step(module, pair, copies, sources, targets)`: two pairs, uneven shares, the gradients of the whole batch."""
    report = _Check("hybrid", cluster, {"decoders": 1, "encoders": 1})
    cases = report.cases(3, "hybrid", step)
    if cases is not None:
        for role in reversed(ROLES):
            report.first(role + "s", (verdicts.hybrid_problem(*case, role) for case in cases),
                         [_sample(case["got"]) for _, case in cases if case["role"] == role])
    report.show()

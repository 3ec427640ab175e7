"""Checks of unit 03, DataParallel: one function for each check cell; each takes what the learner wrote.

Everything runs in the notebook's own kernel: replicas are copies and threads, there is no cluster. The experiments are in the `*with_torch`
modules, which import torch and are imported when a check runs. An exception of the learner's code becomes FAIL lines.
"""

import traceback
from importlib import import_module

from manyhands.checks import seed
from manyhands.checks.on_ranks import RankReport, first
from manyhands.checks.torch_dataparallel import verdicts
from manyhands.checks.torch_dataparallel.words import HINTS, MISTAKES, TEXTS

__all__ = ["HINTS", "apply", "forward", "gather", "loss", "replicate", "scatter"]


class _Check(RankReport):
    """A report whose experiments run here, and not on ranks: one experiment for each criterion, `<report>_<criterion>` in the module."""

    def __init__(self, name, module, points):
        super().__init__(name, None, points, TEXTS, MISTAKES)
        self.module = module

    def run(self, criterion, *functions):
        """Run the experiment with the learner's functions, and judge its cases."""
        module = import_module("manyhands.checks." + self.module)
        try:
            cases = getattr(module, f"{self.name}_{criterion}")(*functions, seed())
        except NotImplementedError as error:
            name = traceback.extract_tb(error.__traceback__)[-1].name
            return self.judge(criterion, False, mistake=MISTAKES["unwritten"].format(name=name))
        except Exception as error:
            return self.judge(criterion, False, mistake=verdicts.of_error(functions[0].__name__, error))
        problem = first(verdicts.problem(self.name, criterion, case) for case in cases)
        return self.judge(criterion, not problem, values=[verdicts.flat(case["got"]) for case in cases], atol=verdicts.ATOL, rtol=verdicts.ATOL, **problem)

    def run_all(self, *functions):
        for criterion in self.points:
            self.run(criterion, *functions)
        self.show()


def scatter(function):
    """Check `function(value, devices)`: a list with one item for each replica."""
    _Check("scatter", "torch_dataparallel.with_torch", {"rows": 1, "nested": 2, "devices": 1, "gradient": 1}).run_all(function)


def gather(function):
    """Check `function(outputs, device)`: one output from those of all replicas."""
    _Check("gather", "torch_dataparallel.with_torch", {"tensors": 1, "nested": 1, "scalars": 1, "gradient": 1}).run_all(function)


def replicate(function):
    """Check `function(module, devices)`: a list of modules, connected to the original."""
    _Check("replicate", "torch_dataparallel.replicas_with_torch", {"copies": 1, "gradients": 2, "buffers": 1, "tied": 1}).run_all(function)


def apply(function):
    """Check `function(replicas, inputs, kwargs, devices)`: the list of what the replicas return, from threads."""
    _Check("apply", "torch_dataparallel.threads_with_torch", {"threads": 1, "results": 1, "modes": 1, "errors": 1}).run_all(function)


def forward(function):
    """Check `function(module, inputs, kwargs, devices, output_device)`; beside nn.DataParallel itself where there are GPUs, else that is BLOCKED."""
    import torch

    report = _Check("forward", "torch_dataparallel.replicas_with_torch", {"outputs": 1, "gradients": 1, "statistics": 1, "gpus": 1})
    for criterion in ("outputs", "gradients", "statistics"):
        report.run(criterion, function)
    if torch.cuda.device_count() >= 2:
        report.run("gpus", function)
    else:
        report.blocked("gpus", points=1, text=TEXTS["forward", "gpus"], why=MISTAKES["gpus"])
    report.show()


def loss(part, whole):
    """Check `part(scores, labels)` of a replica's rows, and `whole(gathered)`, which makes the mean loss of all rows from the gathered parts."""
    _Check("loss", "torch_dataparallel.with_torch", {"mean": 1, "bytes": 1}).run_all(part, whole)

"""Checks of unit 03, DataParallel: a function for each check cell takes what the learner wrote.

Everything runs in the notebook's own kernel, since replicas are copies and threads, and there is no
cluster. The experiments are in the `*with_torch` modules, which import torch and are imported when
a check runs. An exception of the learner's code becomes FAIL lines.
"""

from __future__ import annotations

import traceback
from importlib import import_module
from typing import TYPE_CHECKING, Any

from manyhands.checks import Report, seed
from manyhands.checks.by_hand import close_for
from manyhands.checks.report import Stopped
from manyhands.checks.torch_dataparallel import diagnosis
from manyhands.checks.torch_dataparallel.messages import CRITERIA, HINTS, MISTAKES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from manyhands.checks.torch_dataparallel.answers import Case

__all__ = ["HINTS", "apply", "forward", "gather", "loss", "replicate", "scatter"]


class _Check(Report):
    """A report with one experiment for each criterion, `<report>_<criterion>` in the module."""

    def __init__(self, name: str, module: str) -> None:
        super().__init__(name, CRITERIA)
        self.module = import_module("manyhands.checks.torch_dataparallel." + module)

    def run(self, *functions: Callable[..., Any], criteria: Iterable[str] | None = None) -> None:
        """Run the experiments of these criteria, or of all, and judge their cases.

        They call the learner's functions.
        """
        own = import_module("manyhands.checks.torch_dataparallel.with_torch")
        shut = [close_for(function, own.cut, own.join) for function in functions]
        for criterion in criteria or self.asked:
            with self.part(criterion):
                cases = _cases(
                    getattr(self.module, f"{self.name}_{criterion}".replace("-", "_")), shut
                )
                problems = (diagnosis.problem(self.name, criterion, case) for case in cases)
                self.judge(
                    criterion,
                    problems,
                    [diagnosis.flat(case["got"]) for case in cases],
                    atol=diagnosis.ATOL,
                    rtol=diagnosis.ATOL,
                )


def _cases(
    experiment: Callable[..., list[Case]], functions: Sequence[Callable[..., Any]]
) -> list[Case]:
    """Return the cases of an experiment, or raise `Stopped` if the learner's code raises in it."""
    try:
        return experiment(*functions, seed())
    except NotImplementedError as error:
        raise Stopped(
            MISTAKES["unwritten"].format(name=traceback.extract_tb(error.__traceback__)[-1].name)
        ) from None
    except Exception as error:  # noqa: BLE001 - a learner's function may raise anything
        raise Stopped(diagnosis.describe_error(functions[0].__name__, error)) from None


def scatter(function: Callable[..., Any]) -> None:
    """Check `function(value, devices)`, which returns a list with one item for each replica."""
    with _Check("scatter", "with_torch") as report:
        report.run(function)


def gather(function: Callable[..., Any]) -> None:
    """Check `function(outputs, device)`, which combines the outputs of all replicas into one."""
    with _Check("gather", "with_torch") as report:
        report.run(function)


def replicate(function: Callable[..., Any]) -> None:
    """Check `function(module, devices)`, which returns modules connected to the original."""
    with _Check("replicate", "replicas_with_torch") as report:
        report.run(function)


def apply(function: Callable[..., Any]) -> None:
    """Check `function(replicas, inputs, kwargs, devices)`.

    It returns what the replicas return in threads.
    """
    with _Check("apply", "threads_with_torch") as report:
        report.run(function)


def forward(function: Callable[..., Any]) -> None:
    """Check `function(module, inputs, kwargs, devices, output_device)`.

    Where there are GPUs, compare it with nn.DataParallel itself. Otherwise that criterion is
    BLOCKED.
    """
    import torch

    with _Check("forward", "replicas_with_torch") as report:
        report.run(function, criteria=("outputs", "gradients", "statistics"))
        if torch.cuda.device_count() >= 2:
            report.run(function, criteria=("gpus",))
        else:
            points, text = report.asked["gpus"]
            report.blocked("gpus", points=points, text=text, why=MISTAKES["gpus"])


def loss(part: Callable[..., Any], whole: Callable[..., Any]) -> None:
    """Check `part(scores, labels)` of a replica's rows, and `whole(gathered)`.

    The latter is the mean loss of all rows.
    """
    with _Check("loss", "loss_with_torch") as report:
        report.run(part, whole)

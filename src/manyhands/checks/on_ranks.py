"""Run an experiment with the learner's functions on all ranks, and report it if it does not end.

An experiment is a function of a module of this package that is imported on the ranks only.
`RankReport.on_ranks` runs it. A hang ends after the report's patience and becomes FAIL lines, and
the cluster heals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from manyhands.checks.report import Report, Stopped
from manyhands.checks.unrun_answers import CODE_AGAIN

if TYPE_CHECKING:
    from manyhands.checks.report import Criteria
    from manyhands.cluster import Cluster, Fault

PATIENCE_S, LIMIT_S = 3, 60


HERE_ONLY = (
    "{name} is defined in this kernel, but not on the ranks. Put `%%px --setup` into the first line"
    " of its cell, and run it again."
)


ABSENT = (
    "There is no {name} on the ranks. Run the answer cell `{cell}`, with `%%px --setup` in its "
    "first line. "
)


# {a mistake's name: what to say about it}, and "known": {part of an error: what to do about it}
Mistakes = dict[str | tuple[str, ...], Any]


class Answer(TypedDict, total=False):
    """What a rank answers: what its experiment returned, or which function it lacks.

    `unwritten` is a function that is only a stub or not defined, and `undefined` one that is not
    defined.
    """

    value: Any
    unwritten: str
    undefined: str


class UnwrittenError(NotImplementedError):
    """The learner has not written the function that the message names."""


class UndefinedError(UnwrittenError):
    """The name in the message is not defined."""


def learners(name: str) -> Any:
    """What the learner has called `name` on this rank.

    `UndefinedError` if the name is not defined, `UnwrittenError` if it is only a stub.
    """
    from IPython import get_ipython

    if name not in get_ipython().user_ns:
        raise UndefinedError(name)
    definition = get_ipython().user_ns[name]
    parts = (
        {
            f"{name}.{method}": getattr(definition, method, None)
            for method in ("forward", "backward")
        }
        if isinstance(definition, type)
        else {name: definition}
    )
    for part, function in parts.items():
        if getattr(getattr(function, "__code__", None), "co_names", None) == (
            "NotImplementedError",
        ):
            raise UnwrittenError(part)
    return definition


def _defined_here(name: str) -> bool:
    """Whether the notebook's own kernel has this name, most likely from a cell without %%px."""
    from IPython import get_ipython

    shell = get_ipython()
    return shell is not None and name in shell.user_ns


def _on_rank(module: str, experiment: str, *args: Any) -> Answer:
    """Run an experiment on a rank.

    A stub is reported as unwritten, and the cluster reports any other exception.
    """
    import traceback
    from importlib import import_module

    from manyhands.checks.on_ranks import UndefinedError, UnwrittenError
    from manyhands.checks.rank_tools import end_groups

    end_groups()
    try:
        return {"value": getattr(import_module("manyhands.checks." + module), experiment)(*args)}
    except UndefinedError as error:
        return {"undefined": str(error), "unwritten": str(error)}
    except UnwrittenError as error:
        return {"unwritten": str(error)}
    except NotImplementedError as error:
        return {"unwritten": traceback.extract_tb(error.__traceback__)[-1].name}


class RankReport(Report):
    """A report that asks the ranks of `cluster`.

    `mistakes` are the unit's messages, which must include "unwritten" and "known", {part of an
    error: what to do about it}.
    """

    def __init__(
        self,
        name: str,
        cluster: Cluster,
        criteria: Criteria,
        mistakes: Mistakes,
        patience_s: float = PATIENCE_S,
    ) -> None:
        super().__init__(name, criteria)
        self.cluster, self._mistakes, self._patience_s = cluster, mistakes, patience_s

    def on_ranks(
        self,
        module: str,
        experiment: str,
        *args: Any,
        remark: str | None = None,
        patience_s: float | None = None,
    ) -> list[Any]:
        """Run an experiment on all ranks, and return the values by rank.

        `Stopped` if a rank raises, ends or waits in vain, or does not have the function.

        `remark` names a mistake that is likely when ranks wait for each other in this experiment.
        If a mistake called `REMARK sizes` exists, it is the likely one when their messages do not
        fit together.
        """
        from manyhands.cluster import ClusterStopped, Fault

        patience_s = patience_s or self._patience_s
        if getattr(self.cluster, "backend", None) == "nccl":  # a stopped cluster has none
            # the first call of each group makes a communicator
            patience_s = max(patience_s, self.cluster.patience_s)
        try:
            with self.cluster.holding(self.reports):
                answers = self.cluster.run(
                    _on_rank, module, experiment, *args, patience_s=patience_s, limit_s=LIMIT_S
                )
        except Fault as fault:
            raise Stopped(
                self._summarise_fault(fault, remark), rank=min(fault.culprits, default=None)
            ) from None
        except ClusterStopped as stopped:
            raise Stopped(str(stopped)) from None
        unwritten = [answer["unwritten"] for answer in answers if "unwritten" in answer]
        undefined = [answer["undefined"] for answer in answers if "undefined" in answer]
        if undefined and _defined_here(undefined[0]):
            raise Stopped(HERE_ONLY.format(name=undefined[0]))
        if unwritten:
            absent = (
                "\n" + ABSENT.format(name=undefined[0], cell=self.name) + CODE_AGAIN
                if undefined
                else ""
            )
            raise Stopped(self._mistakes["unwritten"].format(name=unwritten[0]) + absent)
        return [answer["value"] for answer in answers]

    def _summarise_fault(self, fault: Fault, remark: str | None) -> str:
        """The helpful parts of a fault's report, the most helpful first, since long texts are cut.

        The whole report is shown after the card.
        """
        lines = [line.strip() for line in fault.text.splitlines() if line.strip()]
        known = next(
            (text for fragment, text in self._mistakes["known"].items() if fragment in fault.text),
            None,
        )
        waiting = fault.kind in ("hang", "mismatch")
        if fault.differs == "tensors" and f"{remark} sizes" in self._mistakes:
            remark = f"{remark} sizes"
        causes = [line for line in lines if line.startswith(("Who waits", "Likely cause"))][:2]
        helpful = [
            lines[0],
            causes[-1] if fault.differs in ("tensors", "groups") else None,
            known or (self._mistakes[remark] if remark and waiting else None),
            None if waiting else next((line for line in lines[1:] if " raised " in line), None),
            *causes,
        ]
        return "\n".join(dict.fromkeys(line for line in helpful if line))

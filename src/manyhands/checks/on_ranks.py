"""An experiment with the learner's functions on all ranks, and what becomes of it when it does not come to an end.

`RankReport` is a report whose criteria are judged by what an experiment tells; an experiment is a function of a module of this
package that is imported on the ranks only. A hang ends after `patience_s`, becomes FAIL lines, and the cluster heals.
"""

from manyhands.checks import Report

PATIENCE_S, LIMIT_S = 3, 60


class Unwritten(NotImplementedError):
    """The learner has not written what stands in its message."""


def first(problems):
    """The details of the first problem, as keyword arguments of `judge`; none if all is well."""
    return next((problem for problem in problems if problem), {})


def learners(name):
    """What the learner has called `name` on this rank. `Unwritten` if there is nothing, or only a stub."""
    from IPython import get_ipython

    if name not in get_ipython().user_ns:
        raise Unwritten(name)
    found = get_ipython().user_ns[name]
    parts = {f"{name}.{method}": getattr(found, method, None) for method in ("forward", "backward")} if isinstance(found, type) else {name: found}
    for part, function in parts.items():
        if getattr(getattr(function, "__code__", None), "co_names", None) == ("NotImplementedError",):
            raise Unwritten(part)
    return found


def _on_rank(module, experiment, *args):
    """Runs on a rank. A stub that is not written yet is told as such; any other exception is the cluster's to report."""
    import traceback
    from importlib import import_module

    from manyhands.checks.on_ranks import Unwritten

    try:
        return {"value": getattr(import_module("manyhands.checks." + module), experiment)(*args)}
    except Unwritten as error:
        return {"unwritten": str(error)}
    except NotImplementedError as error:
        return {"unwritten": traceback.extract_tb(error.__traceback__)[-1].name}


class RankReport(Report):
    """`points` maps the criteria to their points; `texts[report, criterion]` says what each asks for; `mistakes` are the unit's words:
    "unwritten" and "known", {part of an error: what to do about it}, must be among them."""

    def __init__(self, name, cluster, points, texts, mistakes):
        super().__init__(name)
        self.cluster, self.points, self._texts, self._mistakes = cluster, points, texts, mistakes

    def experiment(self, module, name, *args, only=None, remark=None, patience_s=PATIENCE_S):
        """Run it on all ranks; the values by rank, or None after a FAIL line for each criterion (or for `only`).

        `remark` names a mistake that is likely when ranks wait for each other in this experiment.
        """
        from manyhands.cluster import Fault

        try:
            answers = self.cluster.run(_on_rank, module, name, *args, patience_s=patience_s, limit_s=LIMIT_S)
        except Fault as fault:
            return self._all_fail(only, self._of_fault(fault, remark), rank=min(fault.culprits, default=None))
        unwritten = [answer["unwritten"] for answer in answers if "unwritten" in answer]
        if unwritten:
            return self._all_fail(only, self._mistakes["unwritten"].format(name=unwritten[0]))
        return [answer["value"] for answer in answers]

    def _all_fail(self, only, mistake, rank=None):
        for name in only or self.points:
            self.judge(name, False, rank=rank, mistake=mistake)
        return None

    def judge(self, name, passed, **details):
        return self.criterion(name, points=self.points[name], text=self._texts[self.name, name], passed=passed, **details)

    def _of_fault(self, fault, remark):
        """What of a fault's report helps here, the most telling first: long texts are cut. The cluster has shown the whole of it."""
        lines = [line.strip() for line in fault.text.splitlines() if line.strip()]
        known = next((text for fragment, text in self._mistakes["known"].items() if fragment in fault.text), None)
        waiting = fault.kind in ("hang", "mismatch")
        kept = [lines[0], known or (self._mistakes[remark] if remark and waiting else None),
                *[line for line in lines if line.startswith(("Who waits", "Likely cause"))][:2],
                None if waiting else next((line for line in lines[1:] if " raised " in line), None)]
        return "\n".join(line for line in kept if line)

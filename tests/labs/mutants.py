"""Named wrong solutions and alternative right ones, and a warm kernel that runs them.

See tests/mutants/README.md for their files.
"""

import ast
import copy
import os
import re
import symtable
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import jupytext

from manyhands.checks.record import FAIL, PASS
from manyhands.grading import notebooks
from manyhands.grading.compare import compare, records
from manyhands.grading.engine import copy_beside
from manyhands.grading.store import references
from manyhands.isolation.kernel import Kernel
from manyhands.isolation.kernel_limits import Limits

ROOT = Path(__file__).resolve().parents[2]
SEED, OTHER_SEED = 4711, 1234
PATIENCE_S = 2
KEYS = {"fails", "shows", "points", "runs", "leaves"}


def units():
    """The units that have a solution."""
    return sorted(
        path.parent.name
        for path in (ROOT / "solutions").glob("*/*.ipynb")
        if path.stem == path.parent.name
    )


def solution_path(unit):
    return ROOT / "solutions" / unit / f"{unit}.ipynb"


@dataclass
class Mutant:
    """One file of tests/mutants: what it replaces and what must come of it."""

    unit: str
    path: Path
    facts: dict = field(default_factory=dict)
    cells: dict = field(default_factory=dict)  # grade_id -> source

    @property
    def name(self):
        return f"{self.unit}/{self.path.stem}"

    @property
    def right(self):
        return self.path.stem.startswith("right_")

    @property
    def fails(self):
        """{check/criterion} that must fail."""
        return words(self.facts.get("fails", []))


def words(lines):
    """The words in some lines, with or without commas."""
    return set(re.split(r"[,\s]+", " ".join(lines).strip())) - {""}


def read(unit, path):
    """A mutant's file; ValueError if it is not in the form that the README describes."""
    text = path.read_text(encoding="utf-8")
    mutant = Mutant(unit, path)
    for line in (ast.get_docstring(ast.parse(text)) or "").splitlines()[1:]:
        key, _, value = line.partition(":")
        if key in KEYS:
            mutant.facts.setdefault(key, []).append(value.strip())
    for cell in jupytext.reads(
        text, fmt={"extension": ".py", "format_name": "percent", "comment_magics": True}
    ).cells:
        if cell.cell_type == "code" and cell.metadata.get("grade_id"):
            mutant.cells[cell.metadata["grade_id"]] = cell.source
    if not mutant.cells:
        raise ValueError(f"{path.name} replaces no answer: give its cells a grade_id")
    if (mutant.right and set(mutant.facts) - {"runs"}) or (
        not mutant.right and not {"fails", "shows", "points"} <= set(mutant.facts)
    ):
        raise ValueError(
            f"{path.name}: a wrong solution says fails, shows and points, a right one none of them"
        )
    return mutant


def defined_and_used(cell):
    """(names that a code cell gives a value at its top level, global names and strings in it).

    The strings count because a check is given `"make_buckets"` where the function is on the ranks.
    """
    source = (
        re.sub(r"^[%!].*", "", cell.source, flags=re.MULTILINE) if cell.cell_type == "code" else ""
    )
    top = symtable.symtable(source, "cell", "exec")
    defined = {
        name.get_name()
        for name in top.get_symbols()
        if name.is_assigned() and not name.is_imported()
    }
    strings = {
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    tables, used = [top], strings
    while tables:
        table = tables.pop()
        tables += table.get_children()
        used |= {
            name.get_name()
            for name in table.get_symbols()
            if name.is_referenced() and (table is top or name.is_global())
        }
    return defined, used


def of_unit(unit):
    """The mutants of a unit, in order."""
    return [read(unit, path) for path in sorted((ROOT / "tests" / "mutants" / unit).glob("*.py"))]


@dataclass
class Outcome:
    """What became of a mutant.

    `criteria` are its criteria, `forged` the same with every verdict forged, and `text`
    what was shown.
    """

    criteria: list
    forged: list
    text: str

    @property
    def points(self):
        return sum(criterion.earned for criterion in self.criteria)

    @property
    def fails(self):
        return _failed(self.criteria)


def _failed(criteria):
    return {
        f"{criterion.check.removesuffix('-check')}/{criterion.name}"
        for criterion in criteria
        if criterion.status == FAIL
    }


class Warm:
    """A kernel in which a unit's solution has run; a context manager."""

    def __init__(self, unit):
        self.unit = unit

    def __enter__(self):
        self.solution = notebooks.read(solution_path(self.unit))
        self.checks = notebooks.checks_of(self.solution)
        self.folder = tempfile.TemporaryDirectory(prefix="mh-")
        copy_beside(solution_path(self.unit), self.folder.name)
        with patience():
            self.kernel = Kernel(
                self.folder.name, SEED, sandboxed=False, limits=Limits(total_s=1200)
            ).__enter__()
        try:
            self.reference = self._run_solution()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.kernel.close()
        self.folder.cleanup()

    def _run_solution(self):
        """Run the solution and return {grade_id: outputs}.

        A plan ends with the last check, before the cell that stops the cluster.
        """
        shown = {}
        for step in notebooks.plan_of_solution(self.solution).steps:
            ran = self.kernel.run(step.source)
            assert not ran.error or step.may_raise, f"{step.where}: {ran.error}"
            if step.check:
                shown[step.check] = ran.outputs
        with patience():  # the key depends on it
            references.save(references.key(solution_path(self.unit), self.solution, SEED), shown)
        return shown

    @cached_property
    def by_name(self):
        return {
            notebooks.grade_id(cell): cell
            for cell in self.solution.cells
            if notebooks.grade_id(cell)
        }

    @cached_property
    def reach(self):
        """{check: the grade_ids of the answers that it uses}.

        These are the answer with the check's own name and those that the check reaches by names,
        through other cells too.
        """
        cells = [
            (notebooks.grade_id(cell), *defined_and_used(cell)) for cell in self.solution.cells
        ]
        answers_by_check = {}
        for check in self.checks:
            answers, todo, seen = (
                {check.removesuffix("-check")},
                {name for key, _, used in cells if key == check for name in used},
                set(),
            )
            while todo:
                seen |= todo
                reached = [(key, used) for key, defined, used in cells if defined & todo]
                answers |= {key for key, _ in reached}
                todo = {name for _, used in reached for name in used} - seen
            answers_by_check[check] = answers
        return answers_by_check

    def checks_of(self, mutant):
        """The check cells that use an answer that the mutant replaces, in order.

        If the mutant names some checks under `runs`, only these are returned.
        """
        named = words(mutant.facts.get("runs", []))
        assert {name + "-check" for name in named} <= set(self.checks), (
            f"there is no such check: {named}"
        )
        using = [name for name in self.checks if self.reach[name] & set(mutant.cells)]
        return [name for name in using if not named or name.removesuffix("-check") in named]

    def try_out(self, mutant):
        """Run a mutant's answers and the checks after them.

        The solution's answers are put back afterwards.
        """
        unknown = set(mutant.cells) - set(self.by_name)
        assert not unknown, f"the lab has no answer {sorted(unknown)}"
        checks = self.checks_of(mutant)
        try:
            for name, source in mutant.cells.items():
                ran = self.kernel.run(source)
                assert not ran.error, (
                    f"{name} does not even run: {ran.error}\n{printed({name: ran.outputs})}"
                )
            shown = self._shown(checks)
        finally:
            for name in mutant.cells:
                self.kernel.run(self.by_name[name].source)
        return self.judge({**self.reference, **shown})

    def again(self, mutant):
        """The same checks once more, of the solution's answers, which stand there again."""
        return self.judge({**self.reference, **self._shown(self.checks_of(mutant))})

    def _shown(self, checks):
        """{check: outputs} of these checks, run in order."""
        return {name: self.kernel.run(self.checks[name].source).outputs for name in checks}

    def judge(self, shown):
        criteria, forged = [], []
        for name, cell in self.checks.items():
            points = notebooks.points_of(cell)
            criteria += compare(name, points, shown[name], self.reference[name])
            forged += compare(name, points, with_forged_verdicts(shown[name]), self.reference[name])
        return Outcome(criteria, forged, printed(shown))

    def other_seed(self):
        """{check/criterion: values} under the seed of the reference, and under another."""
        self.kernel.run(f"import os; os.environ['MANYHANDS_SEED'] = '{OTHER_SEED}'")
        other = self._shown(self.checks)
        self.kernel.run(f"import os; os.environ['MANYHANDS_SEED'] = '{SEED}'")
        return evidence(self.reference), evidence(other)


def with_forged_verdicts(outputs):
    outputs = copy.deepcopy(outputs)
    for record in records(outputs):
        for criterion in record["criteria"]:
            criterion["status"] = PASS
    return outputs


def evidence(shown):
    return {
        f"{check.removesuffix('-check')}/{criterion['name']}": criterion["values"]
        for check, outputs in shown.items()
        for record in records(outputs)
        for criterion in record["criteria"]
        if criterion["status"] == PASS
    }


def printed(shown):
    """All that the checks printed, in one line."""
    parts = [output.get("text", "") for outputs in shown.values() for output in outputs]
    return " ".join(" ".join(parts).split())


@contextmanager
def patience():
    """Hangs that are made on purpose need not last long."""
    before = os.environ.get("MANYHANDS_PATIENCE_S")
    os.environ["MANYHANDS_PATIENCE_S"] = before or str(PATIENCE_S)
    try:
        yield
    finally:
        if before is None:
            del os.environ["MANYHANDS_PATIENCE_S"]

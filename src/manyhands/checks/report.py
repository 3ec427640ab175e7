"""The report of a check cell: one line for each criterion, and a record for the grader."""

import os

from manyhands.checks.hints import hint_for
from manyhands.checks.record import BLOCKED, FAIL, MIME, PASS, SCHEMA, flatten, shorten


class Report:
    """The result of one check cell. `name` is the cell's grade_id without `-check`."""

    def __init__(self, name):
        self.name = name
        self.criteria = []

    def criterion(self, name, *, points, text, passed, values=(), atol=0.0, rtol=0.0,
                  rank=None, expected=None, got=None, mistake=None):
        """Add one criterion; returns whether it passed.

        `values` is the evidence: numbers (nested lists, arrays and tensors will do) that depend on the seed and that the
        learner's code has produced, never the check's own expectation. The grader compares them with the solution's to
        `atol` + `rtol` * |reference|. A criterion that passes without values is a mistake of the check: `ValueError`.
        `rank`, `expected`, `got` and `mistake` (the likely mistake and its remedy) are shown where it fails.
        """
        passed, values = bool(passed), flatten(values)
        if passed and not values:
            raise ValueError(f"criterion {name!r} passes without values: give the numbers that prove it")
        detail = {"rank": rank, "expected": expected, "got": got, "mistake": mistake}
        detail = {} if passed else {key: shorten(value) for key, value in detail.items() if value is not None}
        self._add(name, points, text, PASS if passed else FAIL, values, atol, rtol, detail)
        return passed

    def blocked(self, name, *, points, text, why):
        """Add a criterion that this machine cannot check: neither failed nor passed, and out of the denominator."""
        self._add(name, points, text, BLOCKED, [], 0.0, 0.0, {"why": shorten(why)})

    def _add(self, name, points, text, status, values, atol, rtol, detail):
        if any(criterion["name"] == name for criterion in self.criteria):
            raise ValueError(f"criterion {name!r} is there twice: give each its own name")
        self.criteria.append({"name": name, "text": text, "points": points, "status": status, "values": values,
                              "atol": float(atol), "rtol": float(rtol), "detail": detail})

    @property
    def record(self):
        """What the grader gets: plain JSON (see `manyhands.checks.record`)."""
        return {"schema": SCHEMA, "name": self.name, "criteria": self.criteria}

    def lines(self):
        """The report as the reader sees it, line by line."""
        lines = []
        for criterion in self.criteria:
            lines += criterion_lines(criterion)
        name = hint_for(self.name)
        if name and any(criterion["status"] == FAIL for criterion in self.criteria):
            lines.append(f'For help, run: hint("{name}")')
        return lines

    def show(self):
        """Print the report; where a grader asks for it (`MANYHANDS_RECORD=1`), publish the record too.

        The record stays out of stored outputs: its last digits differ from one machine to another.
        """
        print("\n".join(self.lines()))
        if os.environ.get("MANYHANDS_RECORD") == "1":
            from IPython.display import publish_display_data

            publish_display_data({MIME: self.record})


def criterion_lines(criterion):
    """`PASS 2/2  text`, and for one that did not pass, its details below."""
    status, points = criterion["status"], criterion["points"]
    if status == BLOCKED:
        head = "BLOCKED   "
    else:
        earned = points if status == PASS else 0
        head = f"{status.upper()} {earned}/{points}  ".ljust(10)
    indent = " " * len(head)
    lines = [head + criterion["text"]]
    for key, value in criterion["detail"].items():
        lines.append(f"{indent}{key + ':':<10}{value}".replace("\n", "\n" + indent + " " * 10))
    return lines

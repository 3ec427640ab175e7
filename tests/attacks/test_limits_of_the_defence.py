"""What the grader cannot hold, shown and not hidden: docs/ATTACKS.md tells of it.

Where one of these fails, the defence has become better: then move it to the attacks that are held,
and change that page.
"""

import pytest
from nbformat.v4 import new_code_cell
from target import WRONG

from manyhands.isolation.kernel import Kernel

TAKEN_FROM_THE_CHECK = {
    "the right answer is taken out of the check's own call": """
from manyhands.checks import Report
honest = Report.criterion
Report.criterion = lambda self, name, *, passed, values=(), expected=None, **rest: honest(
    self, name, passed=True, values=[eval(str(expected))], **rest)
""",
    "a number that becomes what it is compared with": """
class Chameleon(float):
    def __new__(cls, seen=None):
        made = super().__new__(cls, 0.0)
        made.seen = seen if seen is not None else []
        return made
    def __sub__(self, other):
        self.seen.append(float(other))
        return 0.0
    def __float__(self):
        return self.seen[-1]
""",
}
ANSWERS = {
    "a number that becomes what it is compared with": {
        "square": "return Chameleon()",
        "total": "return Chameleon()",
    }
}


@pytest.mark.parametrize("name", TAKEN_FROM_THE_CHECK)
def test_a_check_that_knows_the_answer_can_be_made_to_tell_it(lab, attack, name):
    notebook = lab.handed_in(**ANSWERS.get(name, WRONG))
    notebook.cells.insert(1, new_code_cell(TAKEN_FROM_THE_CHECK[name]))
    assert attack(notebook).points == (4, 4)


def test_the_real_computation_may_be_anybodys(lab, attack):
    """It does not prove who wrote the code.

    What it proves is that this kernel could compute the right numbers for inputs that nobody knew.
    """
    notebook = lab.handed_in(
        square="import numpy; return float(numpy.square(x))", total="return sum(xs)"
    )
    assert attack(notebook).points == (4, 4)


def test_two_sandboxes_can_speak_through_locks_on_files_that_both_see(tmp_path):
    with (
        Kernel(tmp_path, 5, sandboxed=True) as first,
        Kernel(tmp_path, 5, sandboxed=True) as second,
    ):
        lock = (
            "import fcntl; file = open('/usr/bin/env'); fcntl.flock(file, fcntl.LOCK_EX | "
            "fcntl.LOCK_NB)"
        )
        assert not first.run(lock).error
        assert "BlockingIOError" in second.run(lock).error

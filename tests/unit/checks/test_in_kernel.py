"""What is told of an exception in the learner's function: its cause, in one line."""

import pytest

from manyhands.checks.in_kernel import call

WRAPPED = """Exception encountered when calling layer 'watched' (type Watched).

in user code:

    File "cell.py", line 3, in call
        return x @ self.w

    ValueError: Dimensions must be equal, but are 2 and 5.

Call arguments received by layer 'watched' (type Watched):
"""


@pytest.mark.parametrize("text, told", [("no such row", "ValueError: no such row"), ("", "ValueError: "), (WRAPPED, "ValueError: Dimensions must be equal, but are 2 and 5."),
                                        ("in user code:\n\n    File x\n\n    TypeError: one argument\n", "TypeError: one argument")])
def test_the_cause_is_told(text, told):
    def learners():
        raise ValueError(text)

    assert call(learners) == (None, f"learners raised {told}")

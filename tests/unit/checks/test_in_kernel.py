"""What is told of an exception in the learner's function: its cause, in one line."""

import numpy as np
import pytest

from manyhands.checks.in_kernel import ask_kept, ask_noting_changes, call
from manyhands.checks.report import Stopped

WRAPPED = """Exception encountered when calling layer 'watched' (type Watched).

in user code:

    File "cell.py", line 3, in call
        return x @ self.w

    ValueError: Dimensions must be equal, but are 2 and 5.

Call arguments received by layer 'watched' (type Watched):
"""


@pytest.mark.parametrize(
    "text, cause",
    [
        ("no such row", "ValueError: no such row"),
        ("", "ValueError: "),
        (WRAPPED, "ValueError: Dimensions must be equal, but are 2 and 5."),
        ("in user code:\n\n    File x\n\n    TypeError: one argument\n", "TypeError: one argument"),
    ],
)
def test_the_cause_is_told(text, cause):
    def learners():
        raise ValueError(text)

    assert call(learners) == (None, f"learners raised {cause}")


def test_a_variable_is_told_without_its_numbers():
    def learners():
        raise ValueError(
            "Variable (<tf.Variable 'kernel:0' shape=(2, 2) dtype=float32, numpy=\narray([[1., "
            "2.],\n       [3., 4.]], dtype=float32)>) was not created in the scope"
        )

    assert (
        call(learners)[1]
        == "learners raised ValueError: Variable (<tf.Variable 'kernel:0' shape=(2, 2) "
        "dtype=float32>) was not created in the scope"
    )


def test_a_function_that_changes_an_array_that_it_was_given_is_told():
    def learners(x):
        x += 1
        return x

    x = np.zeros(2)
    assert (
        ask_noting_changes(lambda x: x + 1, x)[1] is None
        and "has changed `x`" in ask_noting_changes(learners, x)[1]
        and not x.any()
    )


def test_a_function_that_changes_a_list_that_it_was_given_is_told():
    def learners(first, values):
        values.sort()
        return values[0]

    assert ask_kept(learners, [2, 1], [1, 2, 3]) == 1
    with pytest.raises(Stopped, match="learners has changed `values`, which belongs to its caller"):
        ask_kept(learners, [2, 1], [3, 1, 2])
    with pytest.raises(Stopped, match="has changed `lists`"):
        ask_kept(lambda *lists: lists[0].pop(), [1])

import pytest

from manyhands.ledger.entry import Entry
from manyhands.ledger.step_timeline import _message


def test_a_message_in_ms_from_the_start_of_backward():
    assert _message(Entry("allreduce", 4, 16, 2, start_s=10.5, stop_s=11.0), 10.0, 3) == (
        500.0,
        1000.0,
        "3",
    )


def test_a_message_that_has_not_ended_is_named():
    with pytest.raises(TimeoutError, match=r"message 3 of this step \(allreduce\) has not ended"):
        _message(Entry("allreduce", 4, 16, 2, start_s=10.5), 10.0, 3)

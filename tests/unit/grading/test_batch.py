"""What a run of a batch says of a grade that could not be kept."""

from manyhands.grading.classroom import batch


class FullDisk:
    """A journal that cannot be written to."""

    def current(self, student):
        return None

    def add(self, student, entry):
        raise OSError("No space left on device")


def test_a_grade_that_cannot_be_kept_is_failed_and_not_graded(tmp_path):
    grading = batch.Batch({"alice": tmp_path}, tmp_path / "90_tiny.ipynb", FullDisk(), seed=1)
    outcome = batch.Outcome()
    key = {"submission": "one", "solution": "two", "seed": 1}
    with batch._alone(outcome, "alice"):
        grading._keep("alice", key, {"points": 1.0}, outcome)
    assert (outcome.graded, outcome.failed) == (
        [],
        {"alice": "OSError: No space left on device"},
    )

"""A stamp is read as nbgrader reads it, without nbgrader."""

import pytest
from nbgrader.utils import parse_utc

from manyhands.grading.store import submissions

STAMPS = [
    "2026-12-01 18:00:00.250000 UTC",
    "2026-12-01 18:00:00 JST",
    "2026-12-01 18:00:00 Asia/Tokyo",
    "2026-12-01 18:00:00 +0900",
    "2026-12-01 18:00:00 -0500",
    "2026-12-01 18:00:00",
    "2026-12-01T18:00:00+09:00",
    "2026-12-01",
    "18:00",
    "2026-12-01 18:00:00 +",
]


@pytest.mark.parametrize("text", STAMPS)
def test_a_stamp_means_what_nbgrader_takes_it_for(text, tmp_path):
    (tmp_path / submissions.STAMPS[0]).write_text(text + "\n")
    assert submissions.handed_in_at(tmp_path) == parse_utc(text)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01 18:00:00 UTC", "9" * 300])
def test_what_is_no_time_gives_none(text, tmp_path):
    (tmp_path / submissions.STAMPS[0]).write_text(text)
    assert submissions.handed_in_at(tmp_path) is None

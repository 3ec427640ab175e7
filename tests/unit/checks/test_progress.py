"""The progress file: nothing is lost when several write, nor when it is broken."""

import json
import multiprocessing
from pathlib import Path

import pytest

from manyhands.checks import progress
from manyhands.learner import certificate_paper, start_page
from manyhands.units import units

ROOT = Path(__file__).resolve().parents[3]


def _many_hints(work, worker):
    for number in range(20):
        progress.add_hint(work, "90_tiny", f"90-{worker}-{number}")


def test_several_writers_lose_nothing(tmp_path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_many_hints, args=(tmp_path, worker)) for worker in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(progress.load(tmp_path)["90_tiny"]["hints"]) == 60
    assert sorted(path.name for path in (tmp_path / ".manyhands").iterdir()) == [
        "progress.json",
        "progress.lock",
    ]


def test_broken_file_counts_as_nothing(tmp_path):
    path = progress.path_in(tmp_path)
    path.parent.mkdir()
    for content in ("", "[]", '{"90_tiny": 3}', "{"):
        path.write_text(content)
        progress.add_result(tmp_path, "90_tiny", 3, 4)
        entry = json.loads(path.read_text())["90_tiny"]
        assert (entry["points"], entry["max"], entry["hints"]) == (3, 4, [])


def test_what_could_not_be_read_is_kept_beside(tmp_path):
    path = progress.path_in(tmp_path)
    path.parent.mkdir()
    for content in ("{", '{"90_tiny": {"points": "5", "notes": "mine"}}', "{"):
        path.write_text(content)
        progress.add_hint(tmp_path, "90_tiny", "90-a")
    contents = sorted(copy.read_text() for copy in path.parent.glob("progress.broken*.json"))
    assert contents == ["{", '{"90_tiny": {"points": "5", "notes": "mine"}}']


ODD = [None, True, -1e400, float("nan"), "5", "²", [], [[]], {}, {"a": {"b": 3}}, 10**400, "\ud800"]


@pytest.mark.parametrize(
    "key", ["points", "max", "when", "hints", "seen", "predictions", "unknown"]
)
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:12])
def test_a_value_of_another_type_counts_as_nothing(key, odd, tmp_path):
    whole = {
        "points": 5,
        "max": 8,
        "when": "2026-11-27T08:00:00+00:00",
        "hints": ["a"],
        "seen": ["b"],
        "predictions": {
            "06-x": {"guess": 3, "locked": "t", "came": 3, "right": True, "surprise": 0.0}
        },
    }
    path = progress.path_in(tmp_path / "work")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"06_ddp": {**whole, key: odd}}))
    (entry,) = progress.load(tmp_path / "work").values()
    for name, value in whole.items():
        same = entry.get(name) == value
        assert same or name == key or {name, key} == {"points", "max"}
    assert key != "points" or "max" not in entry or entry["points"] == odd
    for unit in units(ROOT):  # what reads them: the start page, and the certificate
        start_page._row(unit, progress.load(tmp_path / "work").get(unit.name, {}), [])
    certificate_paper.graded(entry)


def test_work_folder(tmp_path):
    inner = tmp_path / "work" / "06_ddp"
    inner.mkdir(parents=True)
    assert progress.work_folder(inner) == tmp_path / "work"
    assert progress.work_folder(tmp_path) is None or "work" in tmp_path.parts

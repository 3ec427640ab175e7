"""The progress file: nothing is lost when several write, nor when it is broken."""

import json
import multiprocessing

from manyhands.checks import progress


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
    assert sorted(path.name for path in (tmp_path / ".manyhands").iterdir()) == ["progress.json", "progress.lock"]


def test_broken_file_counts_as_nothing(tmp_path):
    path = progress.path_in(tmp_path)
    path.parent.mkdir()
    for content in ("", "[]", '{"90_tiny": 3}', "{"):
        path.write_text(content)
        progress.add_result(tmp_path, "90_tiny", 3, 4)
        entry = json.loads(path.read_text())["90_tiny"]
        assert (entry["points"], entry["max"], entry["hints"]) == (3, 4, [])


def test_work_folder(tmp_path):
    inner = tmp_path / "work" / "06_ddp"
    inner.mkdir(parents=True)
    assert progress.work_folder(inner) == tmp_path / "work"
    assert progress.work_folder(tmp_path) is None or "work" in tmp_path.parts

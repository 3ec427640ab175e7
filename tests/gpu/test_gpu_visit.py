"""What the visit to a machine with a GPU is made of: the plan, its limits, the report.

Its items stand in for the real ones.
"""

import json
import subprocess
import sys
import time

import gpu_report
import gpu_visit
import prepare
import pytest
from gpu_plan import ITEMS, LABS, LATER, NOTHING, OVER_NCCL, TUTORIALS, Item

FAST = "from gpu_tell import figure, failure, lacking; figure('speed', 2.34567, 'm/s')"


def item(name, program, limit_s=30.0):
    return Item(name, f"what {name} is for", (sys.executable, "-c", program), limit_s)


@pytest.fixture(autouse=True)
def told_in_this_folder(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(prepare.HERE))
    monkeypatch.setattr(
        gpu_report,
        "machine",
        lambda: {"device": "H9", "driver": "1", "torch": "2", "python": "3", "cores": 4},
    )


def test_the_plan_names_what_there_is_and_keeps_the_limit():
    assert len({planned.name for planned in ITEMS}) == len(ITEMS) == 12
    assert all(planned.limit_s + 2 * gpu_visit.STOP_S < 8 * 60 - 30 for planned in ITEMS), (
        "an item needs a run of 8 minutes at most, unpacking included"
    )
    for planned in ITEMS:
        assert (prepare.HERE / planned.command[1]).is_file()
    for unit in TUTORIALS + LATER + OVER_NCCL:
        assert list((prepare.ROOT / "notebooks").glob(f"{unit}_*.ipynb"))
    for unit in LABS + OVER_NCCL:
        assert list((prepare.ROOT / "solutions").glob(f"{unit}_*"))


def test_each_end_is_told_and_the_report_has_all(tmp_path):
    items = [
        item("good", FAST),
        item("bad", FAST + "; failure('sum', 'the whole\\ntrace'); raise SystemExit(1)"),
        item("poor", "from gpu_tell import lacking; lacking('There is no GPU.')"),
        item("dead", "import os; os.abort()"),
    ]
    report = gpu_visit.visit(tmp_path, 60, items=items)
    assert {name: entry["status"] for name, entry in report["items"].items()} == {
        "good": "passed",
        "bad": "failed",
        "poor": "lacking",
        "dead": "failed",
    }
    assert json.loads((tmp_path / "report.json").read_text()) == report
    text = (tmp_path / "report.md").read_text()
    assert (
        "Device: H9 (1)" in text
        and "| speed | 2.346 m/s |" in text
        and "**sum**" in text
        and "the whole\ntrace" in text
    )
    assert (
        "| poor | not possible here |" in text
        and "There is no GPU." in text
        and NOTHING not in (0, 1, 2)
    )


def test_an_item_is_ended_at_its_limit_with_what_it_has_told(tmp_path):
    begun = time.monotonic()
    slow = item(
        "slow",
        FAST + "; import time, subprocess; subprocess.Popen(['sleep', '600']); time.sleep(600)",
        limit_s=4,
    )
    record = gpu_visit.visit(tmp_path, 60, items=[slow])["items"]["slow"]
    assert (
        time.monotonic() - begun < 20
        and record["status"] == "stopped"
        and record["figures"][0]["value"] == 2.346
    )
    assert gpu_visit.visit(tmp_path, 60, items=[slow])["items"]["slow"] == record, (
        "its whole limit was not enough: not tried again"
    )


def test_what_is_not_reached_is_said_and_done_the_next_time(tmp_path):
    items = [item("first", FAST), item("second", FAST)]
    report = gpu_visit.visit(tmp_path, 2 * gpu_visit.STOP_S + 1, items=items)
    assert report["items"] == {} and gpu_report.waiting(report, ["first", "second"]) == [
        "first",
        "second",
    ]
    assert "| second | not reached | | |" in (tmp_path / "report.md").read_text()
    report = gpu_visit.visit(tmp_path, 60, items=items)
    assert [entry["status"] for entry in report["items"].values()] == ["passed", "passed"]
    before = report["items"]["first"]["seconds"]
    assert (
        gpu_visit.visit(tmp_path, 60, only=["second"], items=items)["items"]["first"]["seconds"]
        == before
    )
    with pytest.raises(SystemExit, match="there is no item third"):
        gpu_visit.visit(tmp_path, 60, only=["third"], items=items)


def test_an_item_that_the_end_of_a_run_has_cut_short_is_begun_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_visit, "LEAST_S", 1)
    slow = item("slow", FAST + "; import time; time.sleep(60)", limit_s=40)
    report = gpu_visit.visit(tmp_path, 2 * gpu_visit.STOP_S + gpu_visit.LEAST_S + 1, items=[slow])
    assert report["items"]["slow"]["status"] == "stopped" and gpu_report.waiting(
        report, ["slow"]
    ) == ["slow"]
    assert "Cut short by the end of a run: slow" in (tmp_path / "report.md").read_text()


def test_the_packages_are_pinned_and_the_course_is_whole():
    names = [pin.partition("==")[0] for pin in prepare.pins()]
    assert "ipyparallel" in names and not {"torch", "tensorflow-cpu"} & set(names)
    packed = prepare.course_files()
    assert {
        "tests/gpu/gpu_plan.py",
        "notebooks/06_ddp.ipynb",
        "src/manyhands/units.toml",
        "sources/scripts/06_dogs.py",
        "tests/dist/test_gpu.py",
    } <= set(packed)
    assert sum((prepare.ROOT / name).stat().st_size for name in packed) < 20e6 and not any(
        name.startswith(".venv") for name in packed
    )


def test_a_folder_that_somebody_else_made_stays(tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(SystemExit, match="name another folder"):
        prepare.prepare(tmp_path)
    assert (tmp_path / "mine").read_text() == "x"


@pytest.mark.parametrize("backend", ["", "nccl"])
def test_over_nccl_all_ranks_get_the_first_gpu(backend, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("GPU_BACKEND", backend)
    asked = (
        "from manyhands.cluster.engines.runtime import gpu_assignment as g; "
        "print(*g.assign_devices(2, 1))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True
    ).stdout
    own = (
        {
            "CUDA_VISIBLE_DEVICES": "0",
            "MANYHANDS_DEVICE": "cuda:0",
            "NCCL_MULTI_RANK_GPU_ENABLE": "1",
        }
        if backend
        else {"MANYHANDS_DEVICE": "cpu"}
    )
    assert printed == f"{backend or 'gloo'} {[own] * 2}\n"

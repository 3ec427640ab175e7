"""What is left out of `make test` because it has passed before.

Only what depends on nothing that has changed is left out.
"""

from pathlib import Path

import pytest

import unchanged

UNITS = {"06_ddp": "ddp", "03_dataparallel": "torch_dataparallel"}


@pytest.mark.parametrize("unit", UNITS)
def test_it_depends_on_the_checks_of_its_unit_and_on_what_they_use(unit):
    files = {str(path.relative_to(unchanged.ROOT)) for path in unchanged.depends_on(unit)}
    assert {
        f"src/manyhands/checks/{UNITS[unit]}/diagnosis.py",
        "src/manyhands/checks/report.py",
        f"solutions/{unit}/{unit}.ipynb",
        "src/manyhands/cluster/cluster.py",
        "tests/labs/mutants.py",
        "constraints.txt",
    } <= files
    assert not [
        name
        for name in files
        if name.startswith(("src/manyhands/hub/", "src/manyhands/checks/horovod/"))
    ]


@pytest.fixture
def course(tmp_path):
    """A copy of a small course.

    It has the files that one unit depends on, and those of another unit's checks.
    """
    for name, text in {
        "solutions/06_ddp/06_ddp.ipynb": "from manyhands.checks import ddp",
        "src/manyhands/checks/ddp/messages.py": "1",
        "src/manyhands/checks/horovod/messages.py": "2",
        "src/manyhands/checks/report.py": "3",
        "src/manyhands/hub/x.py": "4",
        "src/manyhands/data.py": "5",
        "constraints.txt": "6",
        "tests/mutants/06_ddp/wrong.py": "7",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "name, matters",
    [
        ("tests/mutants/06_ddp/wrong.py", True),
        ("solutions/06_ddp/06_ddp.ipynb", True),
        ("src/manyhands/checks/ddp/messages.py", True),
        ("src/manyhands/checks/report.py", True),
        ("src/manyhands/data.py", True),
        ("constraints.txt", True),
        ("src/manyhands/checks/horovod/messages.py", False),
        ("src/manyhands/hub/x.py", False),
    ],
)
def test_a_change_is_seen_where_it_matters(course, name, matters):
    def state():
        unchanged.digest_of_unit.cache_clear()
        return unchanged.digest("06_ddp", course / "tests/mutants/06_ddp/wrong.py", course)

    before = state()
    (course / name).write_text("from manyhands.checks import ddp  # other")
    assert (state() != before) == matters


@pytest.mark.parametrize(
    "environment, wanted",
    [
        ({}, False),
        ({"MANYHANDS_UNCHANGED": "skip"}, True),
        ({"MANYHANDS_UNCHANGED": "run"}, False),
        ({"MANYHANDS_UNCHANGED": "skip", "MANYHANDS_NO_SKIPS": "1"}, False),
    ],
)
def test_only_make_test_of_a_developer_asks_for_it(monkeypatch, environment, wanted):
    for name in ("MANYHANDS_UNCHANGED", "MANYHANDS_NO_SKIPS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert unchanged.wanted() == wanted


def test_what_passed_in_another_state_is_not_known(monkeypatch, tmp_path):
    monkeypatch.setattr(unchanged, "PASSED", Path(tmp_path) / "passed")
    assert not unchanged.known("test_mutant[06_ddp/wrong]", "a")
    unchanged.remember("test_mutant[06_ddp/wrong]", "a")
    assert unchanged.known("test_mutant[06_ddp/wrong]", "a") and not unchanged.known(
        "test_mutant[06_ddp/wrong]", "b"
    )

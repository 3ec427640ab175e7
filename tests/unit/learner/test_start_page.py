"""The list of units, the README's table of it, and the learner's start page."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from manyhands.checks import progress
from manyhands.learner import certificate_paper, renewing, start_page
from manyhands.learner.jupyter_server import EXTENSIONS, SETTINGS, command
from manyhands.learner.released import due_file
from manyhands.learner.renewing import Renewal
from manyhands.units import (
    MARKS,
    NotACloneError,
    find_root,
    minutes_in_class,
    paths,
    readme_table,
    units,
    with_table,
)

ROOT = Path(__file__).resolve().parents[3]
SOURCE = (
    '# %% [markdown] unit={"minutes": MINUTES, "ranks": 4, "framework": "torch", "title": "DDP"} '
    'tags=["x"]\n# # DDP\n'
)


@pytest.fixture
def clone(tmp_path):
    """A clone in which only unit 06 is there."""
    files = {
        "sources/tutorial/06_ddp.py": SOURCE.replace("MINUTES", "15"),
        "sources/labs/06_ddp.py": SOURCE.replace("MINUTES", "40"),
        "notebooks/06_ddp.ipynb": "{}",
        "labs/06_ddp/06_ddp.ipynb": "{}",
        "slides/built/06_ddp.pdf": "",
        "pyproject.toml": 'name = "manyhands"',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def row(text, number):
    """The unit's row of a table; lines that may not be broken are shown with plain spaces."""
    row_text = next(
        line for line in text.splitlines() if line.startswith("|") and number in line[:40]
    )
    return row_text.replace("\N{NO-BREAK SPACE}", " ")


def test_there_are_21_units_numbered_in_order():
    assert [unit.number for unit in units(ROOT)] == [f"{number:02}" for number in range(21)]


def test_paths_name_units_once_and_in_order():
    numbers = {unit.number for unit in units(ROOT)}
    for path in paths().values():
        assert path == sorted(set(path)) and numbers.issuperset(path)
    assert sorted(sum(paths().values(), [])) == sorted(numbers), (
        "each unit is in one path, so in none twice"
    )


def test_minutes_and_ranks_come_from_the_sources(clone):
    unit = units(clone)[6]
    assert (unit.minutes, unit.ranks, unit.planned) == ((15, 40), 4, False)
    assert all(other.planned for other in units(clone) if other.number != "06")


def test_every_unit_that_is_there_tells_its_minutes_ranks_and_memory():
    for unit in units(ROOT):
        if not unit.planned:
            assert all(unit.minutes) and unit.ranks, unit.name
            assert unit.memory_gib, (
                f"{unit.name}: python -m benchmarks memory {unit.number}, and write memory_gib into"
                " units.toml"
            )
            assert round(unit.memory_gib, 1) == unit.memory_gib < 4, (
                "the README asks for 4 GB of memory"
            )


def test_every_source_belongs_to_a_unit_of_the_list():
    names = {unit.name for unit in units(ROOT)}
    assert {
        path.stem
        for folder in ("tutorial", "labs")
        for path in (ROOT / "sources" / folder).glob("*.py")
    } <= names


def test_readme_has_the_table_of_units():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_table(text, readme_table(ROOT)) == text, (
        "mend it with: python -m manyhands.units README.md"
    )


def test_readme_has_the_paths():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for words, path in (
        ("**One day:** units {}.", "one_day"),
        ("**Two days:** in addition, units {}.", "two_days_more"),
        ("**Three days:** in addition, units {}.", "three_days_more"),
    ):
        assert words.format(", ".join(paths()[path])) in text


def test_table_needs_its_marks():
    assert (
        with_table(f"a\n{MARKS[0]}\nold\n{MARKS[1]}\nb", "new")
        == f"a\n{MARKS[0]}\nnew\n{MARKS[1]}\nb"
    )
    with pytest.raises(ValueError, match="does not contain the two marks"):
        with_table("a", "new")


def test_root_is_found_from_below_and_by_name(clone, monkeypatch):
    monkeypatch.delenv("MANYHANDS_ROOT", raising=False)
    assert find_root(clone / "labs" / "06_ddp") == clone
    monkeypatch.setenv("MANYHANDS_ROOT", str(clone))
    assert find_root("/") == clone


def test_no_clone_is_said_plainly(monkeypatch, tmp_path):
    monkeypatch.delenv("MANYHANDS_ROOT", raising=False)
    monkeypatch.setattr("manyhands.units._is_clone", lambda folder: False)
    with pytest.raises(NotACloneError, match="This is not a clone of manyhands"):
        find_root(tmp_path)


def test_page_links_what_is_there_and_greys_what_is_planned(clone):
    text = start_page.write(clone).read_text(encoding="utf-8")
    assert (
        row(text, "06")
        == "| 06 | DistributedDataParallel |  | [tutorial](06_ddp_tutorial.ipynb) | [your "
        "lab](06_ddp/06_ddp.ipynb) | [slides](../slides/built/06_ddp.pdf) | 15 + 40 | 4 | "
        "PyTorch |"
    )
    assert "coming" in row(text, "07") and "](" not in row(text, "07")
    assert "**Next:** unit 06, DistributedDataParallel: [tutorial](06_ddp_tutorial.ipynb)" in text
    assert "$" not in text


def test_page_tells_which_labs_are_to_be_fetched(clone, tmp_path, monkeypatch):
    monkeypatch.setenv("MANYHANDS_EXCHANGE", str(tmp_path / "exchange"))
    assert "Assignment List" not in start_page.text(clone), "an instructor's shell"
    monkeypatch.setenv("JUPYTERHUB_USER", "hand01")
    assert "Assignment List" in start_page.text(clone) and "[your lab](" in row(
        start_page.text(clone), "06"
    )
    (tmp_path / "exchange/manyhands/outbound/06_ddp").mkdir(parents=True)
    assert "| your lab (to fetch) |" in row(start_page.text(clone), "06")
    (clone / "work/06_ddp").mkdir(parents=True)
    assert "[your lab](" in row(start_page.text(clone), "06")


def test_page_shows_the_learners_points(clone):
    progress.add_hint(clone / "work", "06_ddp", "06-average")
    assert "| DistributedDataParallel |  |" in row(start_page.text(clone), "06")
    progress.add_result(clone / "work", "06_ddp", 5, 8)
    assert "| DistributedDataParallel | 5 of 8 |" in row(start_page.text(clone), "06")
    assert "**Next:** unit 06" in start_page.text(clone)
    progress.add_result(clone / "work", "06_ddp", 8, 8)
    assert "| DistributedDataParallel | ✓ 8 of 8 |" in row(start_page.text(clone), "06")
    assert "full marks in every lab that is ready" in start_page.text(clone)


def checks(clone, count):
    """Give the clone's lab so many checks."""
    cells = [{"metadata": {"tags": ["check"]}}] * count + [{"metadata": {}}]
    (clone / "labs/06_ddp/06_ddp.ipynb").write_text(json.dumps({"cells": cells}))


def test_checks_that_were_seen_green_stand_beside_the_points(clone):
    checks(clone, 4)
    for name in ("average", "average", "rows"):
        progress.add_seen(clone / "work", "06_ddp", name)
    assert "| DistributedDataParallel | 2 of 4<br>seen green |" in row(start_page.text(clone), "06")
    progress.add_result(clone / "work", "06_ddp", 5, 8)
    assert "| DistributedDataParallel | 5 of 8<br>2 of 4<br>seen green |" in row(
        start_page.text(clone), "06"
    )
    progress.add_result(clone / "work", "06_ddp", 8, 8)
    assert "| DistributedDataParallel | ✓ 8 of 8 |" in row(start_page.text(clone), "06")


@pytest.mark.parametrize("seen", [None, 3, {"a": 1}, [1, None]])
def test_a_broken_progress_costs_no_page(clone, seen):
    progress.add_seen(clone / "work", "06_ddp", "average")
    path = progress.path_in(clone / "work")
    path.write_text(json.dumps({"06_ddp": {"seen": seen}}))
    assert "| DistributedDataParallel |  |" in row(start_page.text(clone), "06")
    progress.add_seen(clone / "work", "06_ddp", "rows")
    assert progress.load(clone / "work")["06_ddp"]["seen"] == ["rows"]


def write_notebook(clone, count):
    """Give the learner a tutorial of so many cells, c0, c1, ..."""
    cells = [
        {"cell_type": "code", "id": f"c{number}", "source": "x = 1", "metadata": {}}
        for number in range(count)
    ]
    (clone / "work").mkdir(exist_ok=True)
    (clone / "work" / "06_ddp_tutorial.ipynb").write_text(json.dumps({"cells": cells}))


def test_the_minutes_in_class_are_those_of_the_schedules():
    """A day of TEACHING.md is a table of its own; its breaks and the half day do not count."""
    text = (
        (ROOT / "docs" / "TEACHING.md")
        .read_text(encoding="utf-8")
        .split("## Schedules")[1]
        .split("\n## ")[0]
    )
    days = [
        sum(
            int(minutes)
            for line in table.splitlines()
            if line.startswith("|") and "*break*" not in line and "*lunch*" not in line
            for minutes in re.findall(r"\((\d+)[,)]", line)
        )
        for table in text.split("\n\n**")[2:]
    ]
    first, second, third = days
    assert minutes_in_class() == {
        "one_day": first,
        "two_days": first + second,
        "three_days": first + second + third,
    }


def test_paths_say_both_times_and_longer_ones_take_longer():
    """The course as it is: nobody reads of one day that takes 12 hours."""
    text = start_page.text(ROOT)
    for path, minutes in minutes_in_class().items():
        title = certificate_paper.PATH_TITLES[path]
        assert (
            f"* **{title}** (in class: {minutes // 60} h {minutes % 60} min; alone: ".replace(
                " 0 min", ""
            )
            in text
        )


def test_the_time_left_falls_with_what_is_done(clone):
    checks(clone, 4)

    def left():
        return re.search(r"One day.. \((.*?)\)", start_page.text(clone))[1]

    assert left() == "in class: 6 h 40 min; alone: 15 min of tutorials and 40 min of labs"
    write_notebook(clone, 4)
    progress.add_run(clone / "work", "06_ddp", "06_ddp_tutorial.ipynb", "c0")
    assert left().endswith("of labs, with about 50 min left"), "a quarter of the tutorial has run"
    progress.add_seen(clone / "work", "06_ddp", "average")
    assert left().endswith("about 30 min left"), (
        "the tutorial is read, a quarter of the lab is done"
    )
    progress.add_result(clone / "work", "06_ddp", 4, 8)
    assert left().endswith("about 20 min left")
    progress.add_result(clone / "work", "06_ddp", 8, 8)
    assert left().endswith("of labs, all of which is done")


def test_the_server_writes_the_page_when_progress_changes(clone):
    start_page.write(clone)
    renewal = Renewal(clone)
    assert not renewal.look()
    progress.add_seen(clone / "work", "06_ddp", "average")
    assert renewal.look() and not renewal.look()
    assert "seen green" in (clone / "work" / start_page.NAME).read_text(encoding="utf-8")


def test_an_error_does_not_end_the_looking(clone, monkeypatch):
    later, loop = (
        [],
        SimpleNamespace(
            add_callback=lambda look: look(), call_later=lambda seconds, look: later.append(look)
        ),
    )
    renewing._load_jupyter_server_extension(SimpleNamespace(root_dir=str(clone), io_loop=loop))
    monkeypatch.setattr(start_page, "write", lambda root: 1 / 0)
    progress.add_seen(clone / "work", "06_ddp", "average")
    with pytest.raises(ZeroDivisionError):
        later.pop()()
    monkeypatch.undo()
    progress.add_seen(clone / "work", "06_ddp", "rows")
    later.pop()()
    assert (
        "seen\N{NO-BREAK SPACE}green"
        in (clone / "work" / start_page.NAME).read_text(encoding="utf-8")
        and len(later) == 1
    )


def test_a_hubs_page_says_when_labs_are_due_and_follows(clone, tmp_path, monkeypatch):
    exchange = tmp_path / "exchange"
    file = due_file(exchange)
    file.parent.mkdir(parents=True)
    monkeypatch.setenv("JUPYTERHUB_USER", "hand01")
    monkeypatch.setenv("MANYHANDS_EXCHANGE", str(exchange))
    renewal = Renewal(clone)
    assert "**Due:**" not in start_page.text(clone) and not renewal.look()
    later, sooner = (
        {"until": f"2026-12-0{day}T09:00:00+00:00", "shown": f"2026-12-0{day} 18:00 JST"}
        for day in (2, 1)
    )
    file.write_text(json.dumps({"06_ddp": later, "90_own": sooner}))
    assert renewal.look() and not renewal.look()
    written = (clone / "work" / start_page.NAME).read_text(encoding="utf-8")
    assert (
        "\n**Due:** 90_own: 2026-12-01 18:00 JST · 06 DistributedDataParallel: 2026-12-02 18:00 "
        "JST.\n" in written
    )
    monkeypatch.delenv("JUPYTERHUB_USER")  # no server of a hub
    assert "**Due:**" not in start_page.text(clone)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"06_ddp": 3}', '{"06_ddp": {"until": null}}', '{"06_ddp": {"until": "x"}}'],
)
def test_a_broken_list_of_due_dates_costs_nobody_the_page(text, clone, tmp_path, monkeypatch):
    due_file(tmp_path).parent.mkdir()
    due_file(tmp_path).write_text(text)
    monkeypatch.setenv("JUPYTERHUB_USER", "hand01")
    monkeypatch.setenv("MANYHANDS_EXCHANGE", str(tmp_path))
    assert "**Due:**" not in start_page.text(clone)


def test_page_of_an_empty_course(tmp_path):
    assert "no unit is ready yet" in start_page.text(tmp_path)


def test_page_is_new_after_every_check(clone, monkeypatch):
    from manyhands.cli import check
    from manyhands.learner.prepare import prepare

    monkeypatch.setenv("MANYHANDS_ROOT", str(clone))
    prepare(clone)
    monkeypatch.setattr(
        "manyhands.grading.check_command.main",
        lambda argv: progress.add_result(clone / "work", "06_ddp", 3, 8) or 1,
    )
    assert check.main(["06"]) == 1
    assert "| 3 of 8 |" in row((clone / "work" / start_page.NAME).read_text(encoding="utf-8"), "06")


def test_jupyter_finds_what_renews_the_page():
    from importlib import import_module

    from jupyterlab_server.config import get_federated_extensions

    extension = get_federated_extensions([str(EXTENSIONS)])["manyhands-lab"]
    assert (EXTENSIONS / "manyhands-lab" / extension["jupyterlab"]["_build"]["load"]).is_file()
    assert f"--LabApp.extra_labextensions_path={EXTENSIONS}" in command(
        ROOT, "work/Start_Here.md", []
    )
    enabled = json.loads((SETTINGS / "jupyter_server_config.json").read_text())["ServerApp"][
        "jpserver_extensions"
    ]
    [module] = [name for name, on in enabled.items() if on]
    assert import_module(module)._jupyter_server_extension_points() == [{"module": module}]

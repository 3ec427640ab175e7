"""The cures of nbval: each of these notebooks must fail, or leave nothing behind. Plain nbval lets most of them pass."""

import threading
from concurrent.futures import ThreadPoolExecutor

import nbformat
import psutil
import pytest

from manyhands.build import canonical
from manyhands.build.execute import execute
from manyhands.build.validate import validate


def notebook_at(path, *cells):
    """Run and store a notebook of these cells, each a text or a (text, tag)."""
    notebook = nbformat.v4.new_notebook()
    for cell in cells:
        source, *tags = (cell,) if isinstance(cell, str) else cell
        notebook.cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": tags} if tags else {}))
    execute(notebook, path.parent, path.name)
    path.write_bytes(canonical.to_bytes(canonical.clean(notebook)))
    return path


def spoil(path, change):
    notebook = canonical.load(path)
    change(notebook.cells)
    path.write_bytes(canonical.to_bytes(notebook))
    return path


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("nb") / "good.ipynb"
    return notebook_at(path, "x = 2\nprint('x is', x)", ("import time; time.time()", "measured"), ("1 / 0", "raises-exception"), "x + 1")


def copy_of(good, tmp_path):
    path = tmp_path / good.name
    path.write_bytes(good.read_bytes())
    return path


def test_a_true_notebook_passes_and_measured_cells_may_differ(good):
    verdict = validate(good)
    assert verdict.passed, verdict.text
    assert verdict.strays == []


def test_a_wrong_output_fails_and_both_are_shown(good, tmp_path):
    path = spoil(copy_of(good, tmp_path), lambda cells: cells[0].outputs[0].update(text="x is 3\n"))
    verdict = validate(path)
    assert not verdict.passed
    assert "x is 3" in verdict.text and "x is 2" in verdict.text and "print('x is', x)" in verdict.text
    assert str(tmp_path) not in verdict.text


def test_a_cell_that_was_never_run_fails(good, tmp_path):
    path = spoil(copy_of(good, tmp_path), lambda cells: cells[3].update(execution_count=None, outputs=[]))
    verdict = validate(path)
    assert not verdict.passed
    assert "it was never run" in verdict.text


def test_a_taught_error_that_does_not_happen_fails(good, tmp_path):
    path = spoil(copy_of(good, tmp_path), lambda cells: cells[2].update(source="1 / 1", outputs=[]))
    spoil(path, lambda cells: cells[2].metadata.tags.append("measured"))
    verdict = validate(path)
    assert not verdict.passed
    assert "it raised nothing" in verdict.text


def test_a_measured_cell_must_still_run(good, tmp_path):
    verdict = validate(spoil(copy_of(good, tmp_path), lambda cells: cells[1].update(source="time.no_such_name")))
    assert not verdict.passed
    assert "NameError" in verdict.text


SWALLOW = """
import time
for _ in range(2):
    try:
        time.sleep(30)
    except KeyboardInterrupt:
        break
"""


def test_a_cell_that_times_out_and_swallows_the_interrupt_fails(tmp_path):
    path = notebook_at(tmp_path / "slow.ipynb", "limit = 0", "print(1)")
    spoil(path, lambda cells: cells[0].update(source=SWALLOW))
    verdict = validate(path, cell_timeout_s=1)
    assert not verdict.passed
    assert verdict.text.count("this cell or one before it timed out") == 2
    assert verdict.seconds < 25


def test_a_notebook_that_takes_too_long_is_stopped_with_all_that_it_started(tmp_path):
    path = notebook_at(tmp_path / "long.ipynb", "1")
    spoil(path, lambda cells: cells[0].update(source="import os; os.system('sleep 987')"))
    verdict = validate(path, timeout_s=4)
    assert not verdict.passed
    assert "stopped after 4 s" in verdict.text
    assert not [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "987"]]


def test_processes_left_behind_are_ended_and_named(tmp_path):
    leak = "import subprocess; p = subprocess.Popen(['sleep', '986'], start_new_session=True)"
    verdict = validate(notebook_at(tmp_path / "leak.ipynb", leak))
    assert verdict.passed, verdict.text
    assert len(verdict.strays) == 1
    assert not psutil.pid_exists(verdict.strays[0])


def test_a_notebook_that_kills_its_validation_fails(tmp_path):
    path = notebook_at(tmp_path / "killer.ipynb", "import os, signal")
    spoil(path, lambda cells: cells[0].update(source="import os; os.kill(os.getppid(), 9)"))
    verdict = validate(path)
    assert not verdict.passed
    assert "the process of nbval ended with -9" in verdict.text


def test_notebooks_run_apart_and_in_their_own_copy_of_the_folder(tmp_path):
    (tmp_path / "beside.txt").write_text("beside")
    cells = (
        "import os\nprint(sorted(os.listdir('.')), open('beside.txt').read())",
        "open('left.txt', 'w').write('1')",
        "print(os.environ['MANYHANDS_QUIET'], os.environ['MANYHANDS_SEED'], os.environ['OMP_NUM_THREADS'], hash('a') % 10)",
    )
    path = tmp_path / "apart.ipynb"
    path.write_text("")
    notebook_at(path, *cells)
    (tmp_path / "left.txt").unlink()
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(validate, [path, path]))
    assert [verdict.passed for verdict in verdicts] == [True, True], verdicts[0].text
    assert sorted(p.name for p in tmp_path.iterdir()) == ["apart.ipynb", "beside.txt"]
    assert threading.active_count() == 1

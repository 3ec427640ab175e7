"""The cures of nbval: each of these notebooks must fail, or leave nothing behind.

Plain nbval lets most of them pass.
"""

import re
import time

import nbformat
import psutil
import pytest

from manyhands.authoring import canonical
from manyhands.authoring.execute import execute
from manyhands.authoring.validate import Validation
from manyhands.shared.processes import children

SWALLOW = """
import time
for _ in range(2):
    try:
        time.sleep(30)
    except KeyboardInterrupt:
        break
"""
APART = """
import os
print(sorted(os.listdir(".")), os.environ["MANYHANDS_QUIET"], os.environ["MANYHANDS_SEED"], hash("a") % 100)
open("left.txt", "w").close()
"""
KILLER = "import os; os.kill(os.getppid(), 9)"
PICTURE = """
from IPython.display import SVG
SVG('<svg width="90"><path id="m2fd4"/><path id="m77"/><use href="#m2fd4" x="1.5" y="88.217579" style="fill: #a8322d"/><text>88.21</text></svg>')
"""
LEAK = "import subprocess; p = subprocess.Popen(['sleep', '986'], start_new_session=True)"


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A notebook that was really run."""
    folder = tmp_path_factory.mktemp("good")
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [
        nbformat.v4.new_code_cell("x = 2\nprint('x is', x)"),
        nbformat.v4.new_code_cell("import time; time.time()", metadata={"tags": ["measured"]}),
        nbformat.v4.new_code_cell("1 / 0", metadata={"tags": ["raises-exception"]}),
        nbformat.v4.new_code_cell("x + 1"),
        nbformat.v4.new_code_cell(APART),
        nbformat.v4.new_code_cell(PICTURE),
        nbformat.v4.new_code_cell(
            "from ipykernel.kernelapp import IPKernelApp\nprint(IPKernelApp.instance().transport)"
        ),
    ]
    execute(notebook, folder, "good")
    # kernels that start at the same moment cannot choose the same port
    assert notebook.cells[-1].outputs[0].text == "ipc\n"
    notebook.cells[4].outputs[0].text = (
        notebook.cells[4].outputs[0].text.replace("[]", "['nb.ipynb']")
    )
    assert notebook.cells[5].outputs[0].data["image/svg+xml"] == drawn(88.217579)
    # as another processor would round it
    notebook.cells[5].outputs[0].data["image/svg+xml"] = drawn(88.21758, marker="m9e0b")
    return canonical.clean(notebook)


def drawn(y, label="88.21", marker="m2fd4", used=None, colour="#a8322d"):
    return (
        f'<svg width="90"><path id="{marker}"/><path id="m77"/><use href="#{used or marker}" '
        f'x="1.5" y="{y}" style="fill: {colour}"/><text>{label}</text></svg>'
    )


def shows(svg):
    return [
        nbformat.v4.new_output(
            "execute_result",
            {"image/svg+xml": svg, "text/plain": "<IPython.core.display.SVG object>"},
            execution_count=6,
        )
    ]


def spoilt(good, tmp_path, **changes):
    """Write a copy of the good notebook in which cell `cell` has other things, as `source=...`."""
    notebook = canonical.from_bytes(canonical.to_bytes(good))
    cell = notebook.cells[changes.pop("cell", 0)]
    cell.metadata.setdefault("tags", []).extend(changes.pop("tags", []))
    cell.update(changes)
    path = tmp_path / "nb.ipynb"
    path.write_bytes(canonical.to_bytes(notebook))
    return path


NEVER_RUN = {"execution_count": None, "outputs": []}
CASES = {
    "a wrong output": (
        {"outputs": [nbformat.v4.new_output("stream", text="x is 3\n")]},
        ["'x is 3\\n' == 'x is 2\\n'", "x = 2"],
    ),
    "a missing output": ({"cell": 3, "outputs": []}, ["Unexpected output fields"]),
    "a cell that was never run": (dict(cell=3, **NEVER_RUN), ["it was never run"]),
    "a picture that has moved": (
        {"cell": 5, "outputs": shows(drawn(88.23))},
        ["mismatch 'image/svg+xml'"],
    ),
    "a picture with another number": (
        {"cell": 5, "outputs": shows(drawn(88.217579, "88.211"))},
        ["mismatch 'image/svg+xml'"],
    ),
    "a picture with another marker": (
        {"cell": 5, "outputs": shows(drawn(88.217579, used="m77"))},
        ["mismatch 'image/svg+xml'"],
    ),
    "a picture in another colour": (
        {"cell": 5, "outputs": shows(drawn(88.217579, colour="#0f2f52"))},
        ["mismatch 'image/svg+xml'"],
    ),
    "an exception after words": (
        {"cell": 3, "source": "print('the', 'reason')\n1 / 0"},
        ["ZeroDivisionError", "Before that the cell showed:\nthe reason"],
    ),
    "a measured cell that fails": ({"cell": 1, "source": "no_such_name"}, ["NameError"]),
    "a skipped cell": ({"cell": 3, "tags": ["nbval-skip"]}, ["it is marked to be skipped"]),
    "a taught error that does not happen": (
        {"cell": 2, "source": "1 / 1", "tags": ["measured"]},
        ["but raised no exception"],
    ),
    "a swallowed interrupt": (
        {"cell": 3, "source": SWALLOW, "outputs": []},
        ["timed out", "time.sleep(30)"],
    ),
    "a killed validation": ({"cell": 3, "source": KILLER}, ["the process of nbval ended with -9"]),
}


@pytest.fixture(scope="module")
def spoils(good, tmp_path_factory):
    """All spoilt notebooks, validated side by side, as the course's own are."""
    before = children()  # of other tests in this process
    paths = {
        name: spoilt(good, tmp_path_factory.mktemp("nb"), **change)
        for name, (change, _) in CASES.items()
    }
    paths["good"] = spoilt(good, tmp_path_factory.mktemp("nb"))
    with Validation(paths.values(), cell_timeout_s=2) as verdicts:
        yield paths, verdicts
    assert [child for child in children() if child not in before] == []


@pytest.mark.parametrize("name", CASES)
def test_this_fails_and_says_why(spoils, name):
    paths, verdicts = spoils
    verdict = verdicts.of(paths[name])
    assert not verdict.passed
    for words in CASES[name][1]:
        assert words in verdict.text
    assert str(paths[name].parent) not in verdict.text and "/mh-" not in verdict.text


def test_a_true_notebook_passes_where_only_measured_cells_differ_and_leaves_no_file(spoils):
    paths, verdicts = spoils
    verdict = verdicts.of(paths["good"])
    assert verdict.passed, verdict.text
    assert verdict.strays == []
    assert [path.name for path in paths["good"].parent.iterdir()] == ["nb.ipynb"]


def test_cells_after_a_timed_out_one_fail_too(spoils):
    paths, verdicts = spoils
    assert re.sub(", 1 warning.*", "", verdicts.of(paths["a swallowed interrupt"]).text).endswith(
        "4 failed, 3 passed"
    )


def verdict_of(path, **options):
    with Validation([path], **options) as verdicts:
        return verdicts.of(path)


def test_processes_left_behind_are_ended_and_named(good, tmp_path):
    verdict = verdict_of(spoilt(good, tmp_path, cell=3, source=LEAK, outputs=[]))
    assert verdict.passed, verdict.text
    assert len(verdict.strays) == 1
    assert not psutil.pid_exists(verdict.strays[0])


def test_the_kernels_see_what_is_put_on_top_of_their_environment(good, tmp_path):
    source = f"import os; _ = open({str(tmp_path / 'seen')!r}, 'w').write(os.environ['MINE'])"
    assert verdict_of(
        spoilt(good, tmp_path, cell=3, source=source, outputs=[]), environment={"MINE": "a/{name}"}
    ).passed
    assert (tmp_path / "seen").read_text() == f"a/{tmp_path.name}-nb"


def test_a_notebook_that_takes_too_long_is_stopped_with_all_that_it_started(good, tmp_path):
    path = spoilt(good, tmp_path, source="import os; os.system('sleep 987')")
    verdict = verdict_of(path, timeout_s=4)
    assert not verdict.passed
    assert "stopped after 4 s" in verdict.text
    assert not is_running("sleep", "987")


def test_whoever_asked_may_stop_it(good, tmp_path):
    path = spoilt(good, tmp_path, source="import os; os.system('sleep 985')")
    with Validation([path]):
        until = time.monotonic() + 60
        while not is_running("sleep", "985") and time.monotonic() < until:
            time.sleep(0.05)
        assert is_running("sleep", "985")
    assert not is_running("sleep", "985")


def is_running(*command):
    return any(
        process.info["cmdline"] == list(command) for process in psutil.process_iter(["cmdline"])
    )

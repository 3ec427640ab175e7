"""Sources become executed, canonical notebooks and labs without solutions.

They are the same bytes every time.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import psutil
import pytest

import tiny_course
from manyhands.authoring import BuildError, canonical, execute, labs, layout, make, up_to_date
from manyhands.isolation.kernel_environment import kernel_environment
from manyhands.shared.processes import adopt_orphans, children, end, release_orphans


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The tiny course, built once; tests only read it."""
    root = tmp_path_factory.mktemp("course")
    for piece in tiny_course.make(root):
        make.build(piece)
    return root


def cells(path):
    return canonical.load(path).cells


def test_all_files_are_made_and_no_other(course):
    made = sorted(
        path.relative_to(course).as_posix() for path in course.rglob("*") if path.is_file()
    )
    assert made == [
        "labs/90_tiny/90_tiny.ipynb",
        "notebooks/90_tiny.ipynb",
        "solutions/90_tiny/90_tiny.ipynb",
        "sources/labs/90_tiny.py",
        "sources/tutorial/90_tiny.py",
    ]


def test_a_notebook_is_executed_and_canonical(course):
    data = (course / "notebooks/90_tiny.ipynb").read_bytes()
    notebook = json.loads(data)
    assert (
        data.decode() == json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    )
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert notebook["metadata"]["manyhands"]["source"] == "sources/tutorial/90_tiny.py"
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [1, 2, 3, 4]
    assert code[1]["outputs"][0]["text"] == ["count: 2\n"]
    assert code[1]["outputs"][1]["data"] == {"text/plain": ["3"]}
    assert code[3]["outputs"][0]["ename"] == "IndexError"
    assert not any("unit" in cell["metadata"] for cell in notebook["cells"])
    nbformat.validate(nbformat.from_dict(notebook))


def test_a_rebuild_changes_no_byte(course):
    before = {path: path.read_bytes() for path in course.rglob("*.ipynb")}
    for piece in layout.pieces(course):
        assert make.build(piece) == []
    assert {path: path.read_bytes() for path in course.rglob("*.ipynb")} == before


def test_a_fresh_build_elsewhere_differs_in_measured_cells_only(course, tmp_path):
    tutorial, lab = tiny_course.make(tmp_path)
    make.build(tutorial)
    make.build(lab)
    for path in ("labs/90_tiny/90_tiny.ipynb", "solutions/90_tiny/90_tiny.ipynb"):
        assert (tmp_path / path).read_bytes() == (course / path).read_bytes()
    pairs = zip(cells(tutorial.notebook), cells(course / "notebooks/90_tiny.ipynb"), strict=True)
    assert [before.metadata.get("tags") for before, after in pairs if before != after] == [
        ["measured"]
    ]


def test_measured_outputs_stay_until_the_source_of_the_cell_changes(tmp_path):
    tutorial, _ = tiny_course.make(tmp_path)
    make.build(tutorial)
    measured = cells(tutorial.notebook)[3].outputs
    tiny_course.replace(tutorial.source, "numbers = [1, 2]", "numbers = [1, 1]")
    assert make.build(tutorial) == [tutorial.notebook]
    assert cells(tutorial.notebook)[3].outputs == measured
    make.build(tutorial, remeasure=True)
    assert cells(tutorial.notebook)[3].outputs != measured
    measured = cells(tutorial.notebook)[3].outputs
    tiny_course.replace(tutorial.source, "# %time sum(numbers)\n", "")
    make.build(tutorial)
    assert cells(tutorial.notebook)[3].outputs != measured


def test_ids_are_names_or_hashes_and_stay_when_a_cell_is_put_before_them(course, tmp_path):
    ids = [cell.id for cell in cells(course / "solutions/90_tiny/90_tiny.ipynb")]
    assert ids[1:] == ["unit-links-head", "double", "double-check", "unit-links-foot"]
    again = tiny_course.LAB.replace(
        "# %% tags", "# %% [markdown]\n# # Lab: double it\n\n# %% tags", 1
    )
    _, lab = tiny_course.make(tmp_path, lab=again)
    notebook = make.expected_notebook(lab)
    assert [cell.id for cell in notebook.cells] == [ids[0], ids[1], ids[0] + "-2", *ids[2:]]


def test_an_edited_cell_keeps_its_id(tmp_path):
    """A sentence and a line of code are edited, and a cell is put between.

    What has another subject gets another id.
    """
    tutorial, _ = tiny_course.make(tmp_path)
    make.build(tutorial, run=False)
    ids = [cell.id for cell in cells(tutorial.notebook)]
    for old, new in (
        ("You will be able to count to two.", "You can count to two."),
        ("numbers = [1, 2]", "numbers = [1, 2, 3]"),
        (
            "# An error that is taught:\n",
            "# Errors are taught:\n\n# %% [markdown]\n# Something that was not here before.\n",
        ),
    ):
        tiny_course.replace(tutorial.source, old, new)
    make.build(tutorial, run=False)
    now = [cell.id for cell in cells(tutorial.notebook)]
    assert (
        len(now) == len(set(now)) == len(ids) + 1
        and [cell_id for cell_id in now if cell_id in ids] == ids
    )
    assert [cell.id for cell in make.expected_notebook(tutorial).cells] == now
    tiny_course.replace(
        tutorial.source,
        "Something that was not here before.",
        "Rings and trees send as many bytes.",
    )
    make.build(tutorial, run=False)
    assert [
        cell_id for cell_id in (cell.id for cell in cells(tutorial.notebook)) if cell_id in now
    ] == ids


def test_without_running_only_unchanged_cells_keep_their_outputs(tmp_path):
    tutorial, _ = tiny_course.make(tmp_path)
    make.build(tutorial)
    tiny_course.replace(tutorial.source, "sum(numbers)\n\n", "max(numbers)\n\n")
    make.build(tutorial, run=False)
    code = [cell for cell in cells(tutorial.notebook) if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [1, None, 2, 3]
    assert code[1].outputs == []


@pytest.mark.parametrize(
    "line, complaint",
    [
        ("1 / 0", ("raises an error", "ZeroDivisionError", "numbers = 1 / 0")),
        ("__import__('os')._exit(3)", ("ends its kernel",)),
        ("__import__('time').sleep(60)", ("runs for more than 1 s",)),
    ],
)
def test_an_error_stops_the_build_with_unit_cell_and_traceback(tmp_path, line, complaint):
    tutorial, _ = tiny_course.make(tmp_path)
    tiny_course.replace(tutorial.source, "numbers = [1, 2]", f"numbers = {line}")
    before = children()  # of other tests in this process
    with pytest.raises(BuildError) as error:
        execute.execute(make.expected_notebook(tutorial), tmp_path, "the unit", cell_timeout_s=1)
    assert "the unit, cell 3 of 7" in str(error.value)
    for part in complaint:
        assert part in str(error.value)
    assert [child for child in children() if child not in before] == []


def test_a_build_that_stops_writes_nothing(tmp_path):
    tutorial, _ = tiny_course.make(tmp_path)
    make.build(tutorial)
    before = tutorial.notebook.read_bytes()
    tiny_course.replace(tutorial.source, "numbers = [1, 2]", "numbers = 1 / 0")
    with pytest.raises(BuildError, match="notebooks/90_tiny.ipynb, cell 3 of 7, raises an error"):
        make.build(tutorial)
    assert tutorial.notebook.read_bytes() == before


def test_a_taught_error_must_happen(tmp_path):
    tutorial, _ = tiny_course.make(tmp_path)
    tiny_course.replace(tutorial.source, "numbers[2]", "numbers[1]")
    with pytest.raises(
        BuildError, match="cell 6 is tagged raises-exception, but raised no exception"
    ):
        make.build(tutorial)


def test_a_place_of_this_machine_in_an_output_stops_the_build(tmp_path):
    tutorial, _ = tiny_course.make(tmp_path)
    tiny_course.replace(tutorial.source, "sum(numbers)\n\n", "__import__('os').getcwd()\n\n")
    with pytest.raises(BuildError, match="cell 3: its output shows .* a folder of this machine"):
        make.build(tutorial)


def test_tracebacks_name_no_place_of_this_machine(tmp_path):
    lines = [
        f"File {tmp_path}/src/a.py:1",
        f"File {sys.prefix}/lib/python3.11/site-packages/torch/b.py:2",
    ]
    error = nbformat.v4.new_output("error", ename="E", evalue="", traceback=lines)
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("1", execution_count=1, outputs=[error])]
    )
    canonical.clean(notebook, tmp_path)
    assert notebook.cells[0].outputs[0].traceback == ["File src/a.py:1", "File torch/b.py:2"]


def test_a_picture_needs_its_numbers_beside_it(tmp_path):
    tutorial, _ = tiny_course.make(tmp_path)
    tiny_course.replace(
        tutorial.source,
        'print("count:", len(numbers))\nsum(numbers)\n\n',
        "from IPython.display import Image\n\nImage(data=b'\\x89PNG\\r\\n\\x1a\\n')\n\n",
    )
    with pytest.raises(BuildError, match="cell 3 shows a picture and no text"):
        make.build(tutorial)


def test_a_process_that_a_notebook_leaves_is_ended(tmp_path):
    leak = (
        "import subprocess\np = subprocess.Popen(['sleep', '600'], "
        "start_new_session=True)\nprint(p.pid)"
    )
    header = tiny_course.TUTORIAL.split("\n\n")[0]
    (tutorial,) = tiny_course.make(tmp_path, tutorial=f"{header}\n\n# %%\n{leak}\n", lab="")
    before = children()
    execute.execute(make.expected_notebook(tutorial), tmp_path, "leak")
    assert [child for child in children() if child not in before] == []


def test_a_lab_keeps_the_stub_and_the_outputs_of_checks(course):
    _, _, answer, check, _ = cells(course / "labs/90_tiny/90_tiny.ipynb")
    assert answer.source.endswith(
        '"""Twice `number`."""\n    # YOUR CODE HERE\n    raise NotImplementedError()'
    )
    assert (answer.outputs, answer.execution_count) == ([], None)
    assert check.outputs[0].text == "PASS 2/2\n" and check.execution_count == 2
    assert check.metadata["editable"] is False
    assert check.metadata["nbgrader"]["points"] == 2


def test_a_leak_of_the_solution_is_found(course):
    solution = [cell.source for cell in cells(course / "solutions/90_tiny/90_tiny.ipynb")]
    lab = canonical.load(course / "labs/90_tiny/90_tiny.ipynb")
    assert labs.leaks(solution, labs.lab_text(lab)) == []
    lab.cells[0].source += "\n\n    twice = number + number"
    lab.cells[3].outputs[0].text += "### BEGIN HIDDEN TESTS"
    assert labs.leaks(solution, labs.lab_text(lab)) == ["BEGIN HIDDEN", "twice = number + number"]
    long = ["### BEGIN SOLUTION\ntotal = sum(values) / len(values)\nx = 1\n### END SOLUTION"]
    assert labs.leaks(long, "see: total = sum(values) / len(values), and max = 1") == [
        "total = sum(values) / len(values)"
    ]


def test_a_solution_shown_elsewhere_in_the_lab_stops_the_build(tmp_path):
    _, lab = tiny_course.make(tmp_path)
    tiny_course.replace(
        lab.source, "# # Lab: double it", "# # Lab: double it\n#\n#     twice = number + number"
    )
    make.build(lab)  # it stands in the open part of the solution too, so the author wants it read
    tiny_course.replace(lab.source, 'print("PASS', 'print("return " + "twice")\nprint("PASS')
    with pytest.raises(
        BuildError,
        match="labs/90_tiny/90_tiny.ipynb would show a part of the solution: return twice",
    ):
        make.build(lab)


def test_scripts_go_to_each_folder_and_the_lab_gets_the_stub(tmp_path):
    tutorial, lab = tiny_course.make(tmp_path)
    scripts = tmp_path / "sources/scripts"
    scripts.mkdir()
    (scripts / "90_open.py").write_text("print('read me')\n")
    (scripts / "90_answer.py").write_text(
        "def f():\n    ### BEGIN SOLUTION\n    return 42 + 1\n    ### END SOLUTION\n"
    )
    (scripts / "90_job.sbatch").write_text("#!/bin/bash\n")
    (scripts / "90_two.sh").write_text("#!/bin/bash\n")
    (scripts / "90_notes.txt").write_text("not for learners")
    (scripts / "91_other.py").write_text("")
    make.build(tutorial)
    make.build(lab)
    assert sorted(path.name for path in (tmp_path / "notebooks/scripts").iterdir()) == [
        "90_job.sbatch",
        "90_open.py",
        "90_two.sh",
    ]
    assert (tmp_path / "labs/90_tiny/90_job.sbatch").read_text() == "#!/bin/bash\n"
    assert "42 + 1" in (tmp_path / "solutions/90_tiny/90_answer.py").read_text()
    stub = (tmp_path / "labs/90_tiny/90_answer.py").read_text()
    assert stub == "def f():\n    # YOUR CODE HERE\n    raise NotImplementedError()\n"
    assert (
        labs.stub_of_script("#!/bin/bash\n### BEGIN SOLUTION\nsrun true\n### END SOLUTION\n")
        == "#!/bin/bash\n# YOUR LINES HERE\nexit 1  # not written yet\n"
    )
    (scripts / "90_answer.py").unlink()
    make.build(lab, run=False)
    assert not (tmp_path / "labs/90_tiny/90_answer.py").exists()


def test_answers_belong_to_labs(tmp_path):
    tutorial, _ = tiny_course.make(tmp_path, tutorial=tiny_course.LAB)
    with pytest.raises(BuildError, match="answers and checks belong to a lab"):
        make.build(tutorial)


def test_a_unit_says_its_minutes_in_its_first_cell(tmp_path):
    tutorial, _ = tiny_course.make(tmp_path)
    tiny_course.replace(tutorial.source, '"minutes": 10, ', "")
    with pytest.raises(BuildError, match='the first cell lacks unit={"minutes": ...'):
        make.build(tutorial)


def test_records_and_moving_parts_are_not_stored():
    output = nbformat.v4.new_output("display_data", data={canonical.RECORD: {"a": 1}})
    stream = nbformat.v4.new_output("stream", text="10 %\r20 %\rdone\n")
    error = nbformat.v4.new_output("stream", name="stderr", text="warned\n")
    cell = nbformat.v4.new_code_cell(
        "1", execution_count=7, outputs=[error, stream, output, stream.copy()]
    )
    cell.metadata.update(execution={"started": "now"}, tags=["check"], collapsed=True)
    notebook = canonical.clean(nbformat.v4.new_notebook(cells=[cell]))
    assert cell.metadata == {"tags": ["check"]} and cell.execution_count == 1
    assert [out.get("text") for out in notebook.cells[0].outputs] == [
        "done\n",
        "warned\n",
        "done\n",
    ]


def test_write_keeps_the_old_file_when_it_cannot_finish(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError):
        make.write_if_changed(path, b"new")
    assert path.read_bytes() == b"old"


def test_an_instructor_gets_the_same_lab_from_nbgrader_itself(course, tmp_path):
    config = Path(__file__).resolve().parents[3] / "nbgrader_config.py"
    shutil.copy(config, tmp_path)
    shutil.copytree(course / "solutions", tmp_path / "solutions")
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", "90_tiny", "--create"]
    environment = kernel_environment(tmp_path / "home")
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    made = canonical.load(tmp_path / "labs/90_tiny/90_tiny.ipynb")
    assert made.cells == cells(course / "labs/90_tiny/90_tiny.ipynb")
    assert (tmp_path / "classroom" / "gradebook.db").exists() and not (
        course / "classroom"
    ).exists()


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="Linux only: the kernel hands orphans to the nearest process that asks for them",
)
def test_orphans_come_to_this_process_only_while_they_are_asked_for():
    leave = (
        "import subprocess; print(subprocess.Popen(['sleep', '984'], "
        "stdout=subprocess.DEVNULL).pid)"
    )

    def orphan():
        return psutil.Process(
            int(
                subprocess.run(
                    [sys.executable, "-c", leave], stdout=subprocess.PIPE, text=True
                ).stdout
            )
        )

    adopt_orphans()
    adopt_orphans()
    release_orphans()
    adopted = orphan()
    assert adopted in children()
    release_orphans()
    other = orphan()
    assert other not in children()
    assert end([adopted, other]) == [adopted, other]
    assert not adopted.is_running() and not other.is_running()


def test_a_build_keeps_what_the_questions_of_a_tutorial_got(tmp_path):
    asks = (
        '\n# %%\nfrom manyhands import predict, settle\n\npredict("90-sum", "What is the sum?", '
        'unit="apples")\n\n# %%\nsettle("90-sum", lambda: sum(numbers))\n'
    )
    [piece, _] = tiny_course.make(tmp_path, tiny_course.TUTORIAL + asks)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/outcomes.json").write_text('{"01-decay": 4, "90-gone": 1}')
    assert tmp_path / "notebooks/outcomes.json" in make.build(piece)
    assert json.loads((tmp_path / "notebooks/outcomes.json").read_text()) == {
        "01-decay": 4,
        "90-sum": 3,
    }
    assert up_to_date.drifts(tmp_path, ["notebooks/90_tiny.ipynb"]) == []
    (tmp_path / "notebooks/outcomes.json").unlink()
    [drift] = up_to_date.drifts(tmp_path, ["notebooks/90_tiny.ipynb"])
    assert (
        "has no outcome that answers 90-sum" in drift.what and drift.remedy == "manyhands build 90"
    )

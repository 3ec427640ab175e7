"""What a kernel can say to the grader that is no good Jupyter message.

The answers are right and count: nothing stops the grader.
"""

import ast
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_output

from manyhands import grading
from manyhands.grading.compare import compare
from manyhands.isolation.kernel import Kernel
from manyhands.isolation.kernel_limits import Limits

MIME = "application/vnd.manyhands.record+json"
TOOLS = f"""
import json, os, pickle, threading, time
from IPython.display import publish_display_data
shell = get_ipython()
kernel, MIME = shell.kernel, {MIME!r}
parent = kernel.get_parent("shell")

def tell(kind, content, parent=parent, header=None, metadata=None, buffers=None):
    kernel.session.send(kernel.iopub_socket, kind, content, parent=parent, header=header, metadata=metadata, buffers=buffers)

def raw(*parts, sign=True):
    parts = [part if isinstance(part, bytes) else json.dumps(part, default=str).encode() for part in parts]
    kernel.iopub_socket.send_multipart([b"x", b"<IDS|MSG>", kernel.session.sign(parts) if sign else b"0" * 64, *parts])

HEADER = dict(msg_id="1", msg_type="display_data", version="5.3", session="", username="", date="2026-01-01T00:00:00Z")
"""
MESSAGES = {
    "a parent that is no mapping": """
for parent in ([], None, 3, "x", {"msg_id": []}, {"msg_id": {}}):
    raw(HEADER, parent, {}, {"data": {}})""",
    "headers that lack everything": """
for header in ({}, [], None, {"msg_id": 3}, {"msg_id": [], "msg_type": []}, {**HEADER, "version": "4.1"}, {**HEADER, "version": []}):
    raw(header, parent["header"], {}, {"data": {}})""",
    "content that is no mapping": """
for content in ([], None, 3, "x", {"data": []}, {"data": MIME}, {"data": {MIME: [[[]]]}, "metadata": 3, "transient": 4}):
    for kind in ("display_data", "execute_result", "stream", "error", "status", "clear_output", "update_display_data", "comm_open", "x"):
        tell(kind, content) if isinstance(content, dict) else raw({**HEADER, "msg_type": kind}, parent["header"], {}, content)""",
    "too few parts, no parts, unsigned parts, another's signature": """
kernel.iopub_socket.send_multipart([b""])
kernel.iopub_socket.send_multipart([b"<IDS|MSG>"])
kernel.iopub_socket.send_multipart([b"x", b"<IDS|MSG>", b"", b"{}"])
raw(HEADER, parent["header"], {}, {"data": {}}, sign=False)""",
    "no JSON, no text, numbers that are none, a structure deeper than any stack": """
for content in (b"{", b"\\xff\\xfe", b"", b"NaN", b'{"data": Infinity}', b"[" * 100_000, b'{"a":' * 100_000, b"9" * 100_000, b'"\\\\ud800"'):
    raw(HEADER, parent["header"], {}, content)""",
    "streams whose text is no text": """
tell("stream", dict(name="stdout", text=["a", "b"]))
tell("stream", dict(name=["stdout"], text="a"))
tell("error", dict(ename=[], evalue={}, traceback=None))""",
    "replies that nobody asked for": """
for number in range(300):
    kernel.session.send(kernel.shell_stream if hasattr(kernel, "shell_stream") else kernel.shell_socket, "execute_reply",
                        dict(status="ok", execution_count=1, payload=[dict(source="set_next_input", text="x" * 10_000)]),
                        parent=parent, ident=kernel.get_parent("shell").get("idents"))""",
    "records in comms and in buffers": """
record = dict(schema=1, name="square", criteria=[dict(name="value", status="pass", values=[1.0], points=9)])
tell("comm_open", dict(comm_id="1", target_name=MIME, data={MIME: record}))
tell("comm_msg", dict(comm_id="1", data={MIME: record}), buffers=[json.dumps(record).encode()])""",
    "thousands of small displays": """
for number in range(3000):
    tell("display_data", dict(data={"text/plain": str(number)}, metadata={}))""",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_that_are_broken_are_passed_over(lab, attack, name):
    notebook = lab.handed_in()
    notebook.cells.insert(1, new_code_cell(TOOLS + MESSAGES[name]))
    got = attack(notebook)
    assert got.points == (4, 4) and not got.notes.strip(), got.notes


def test_replies_that_never_end_are_not_read(lab, attack, monkeypatch):
    """The clock is not held up by them, nor is the grader's memory filled."""
    read, close = [], Kernel.close

    def noting_close(kernel):
        read.append(kernel.shell.received)
        close(kernel)

    monkeypatch.setattr(Kernel, "close", noting_close)
    notebook = lab.handed_in(
        total="""
    socket = kernel.shell_stream if hasattr(kernel, "shell_stream") else kernel.shell_socket
    while True:
        kernel.session.send(socket, "execute_reply", dict(status="ok", more="x" * 10_000), parent=parent,
                            ident=kernel.get_parent("shell").get("idents"))""".strip()
    )
    notebook.cells.insert(1, new_code_cell(TOOLS))
    got = attack(notebook, limits=Limits(total_s=6))
    assert got.points == (2, 4) and "more than 6 s in total" in got.notes, got.notes
    assert max(read) < 2**19


RECORDS = [
    None,
    3,
    [1],
    "x",
    {},
    {"name": "square"},
    {"name": "square", "criteria": 5},
    {"name": "square", "criteria": [None]},
    {"name": "square", "criteria": [{"name": []}]},
    {"name": "square", "criteria": [{"name": "value", "detail": 4}]},
    {
        "name": "square",
        "criteria": [
            {"name": "value", "status": [], "values": {}, "detail": {"mistake": {"a": [1]}}}
        ],
    },
    {"name": "total", "criteria": [{"name": "value", "status": "pass", "values": [16.0]}]},
    {"name": "square", "criteria": [{"name": "value", "status": "blocked", "values": [16.0]}]},
]


@pytest.mark.parametrize("record", RECORDS, ids=str)
def test_records_that_are_no_records_earn_nothing(record):
    """Straight into the comparison."""
    criterion = {
        "name": "value",
        "text": "t",
        "points": 2,
        "status": "pass",
        "values": [16.0],
        "atol": 1e-6,
        "rtol": 0.0,
        "detail": {},
    }
    wanted = [
        new_output(
            "display_data", data={MIME: {"schema": 1, "name": "square", "criteria": [criterion]}}
        )
    ]
    (got,) = compare("square-check", 2, [new_output("display_data", data={MIME: record})], wanted)
    assert (got.earned, got.points, got.text) == (0, 2, "t")


@pytest.mark.parametrize(
    "data", [None, 3, MIME, [MIME], {MIME: [[]]}, {"text/plain": [1]}], ids=str
)
def test_a_display_that_was_changed_to_what_no_display_is(data):
    """Only the first showing is validated."""
    shown = {**new_output("display_data"), "data": data}
    criterion = {
        "name": "value",
        "text": "t",
        "points": 2,
        "status": "pass",
        "values": [16.0],
        "atol": 1e-6,
        "rtol": 0.0,
        "detail": {},
    }
    record = new_output(
        "display_data", data={MIME: {"schema": 1, "name": "square", "criteria": [criterion]}}
    )
    for wanted in (record, new_output("stream", name="stdout", text="16\n")):
        (got,) = compare("square-check", 2, [shown], [wanted])
        assert got.earned == 0


def test_text_over_which_a_comparison_would_take_hours():
    """nbval looks for carriage returns in a time that grows with the square of a line's length."""
    wanted = [new_output("stream", name="stdout", text="16\n")]
    for text in ("x" * 5_000_000, "x\b" * 2_000_000, ["16\n"]):
        (got,) = compare(
            "square-check", 2, [{"output_type": "stream", "name": "stdout", "text": text}], wanted
        )
        assert got.earned == 0


def test_a_structure_deeper_than_any_stack_is_not_the_text_that_was_wanted():
    deep = "16"
    for _ in range(5000):
        deep = [deep]
    for output in (
        {"output_type": "stream", "name": "stdout", "text": deep},
        {"output_type": "display_data", "data": {"text/plain": deep}},
    ):
        (got,) = compare(
            "square-check", 2, [output], [new_output("stream", name="stdout", text="16\n")]
        )
        assert got.earned == 0


def test_pickles_are_not_opened(lab, attack, outside):
    """All that the kernel sends from then on is a pickle.

    Where it is opened, it writes the gradebook.
    """
    notebook = lab.handed_in()
    notebook.cells.insert(
        1,
        new_code_cell(
            TOOLS
            + f"""
class Trap:
    def __reduce__(self):
        return (exec, ("open({str(outside.gradebook)!r}, 'w').write('opened')",))
trap = pickle.dumps(Trap())
tell("display_data", dict(data={{MIME: "x"}}, metadata={{}}), buffers=[trap])
for content_type in ("application/x-python-pickle", "application/octet-stream", MIME):
    tell("display_data", dict(data={{content_type: trap.decode("latin-1")}}, metadata=dict(pickle=True)))
raw(HEADER, parent["header"], {{}}, trap)
raw(trap, trap, trap, trap)
kernel.session.pack = lambda what: trap"""
        ),
    )
    got = attack(notebook, limits=Limits(total_s=4))
    assert got.points == (0, 4) and "more than 4 s in total" in got.notes


def test_the_grader_has_nothing_that_opens_pickles_or_runs_text():
    forbidden = []
    for path in Path(grading.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import | ast.ImportFrom)
                else []
            )
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += (
                [node.func.id]
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
                else []
            )
            forbidden += [(path.name, name) for name in names if name.split(".")[0] in FORBIDDEN]
    assert not forbidden


FORBIDDEN = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml", "eval", "exec"}

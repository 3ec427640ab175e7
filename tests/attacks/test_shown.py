"""What a submission can put before the eyes of the instructor and of other programs.

That is text, and nothing else.
"""

import html.parser
import json
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from manyhands.grading import grade_report

PAYLOADS = {
    "terminal": "\x1b[2J\x1b]0;title\x07\x08\r\x9b31mred",
    "html": (
        "<script>alert(1)</script><img src=x "
        "onerror=alert(1)>&lt;\"'</td></table><style>*{display:none}</style>"
    ),
    "order": "\u202e\u2066right\u2069 to left\u200b\ufeff",
    "lines": (
        "wrong\n  PASS     2/2  total gives the right value\n\n90_tiny: 4 of 4 points\nFull marks."
    ),
    "half letters": "\ud800 \udfff",
    "long": "x" * 100_000,
}


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}


@pytest.fixture
def hostile(lab):
    """A notebook that says something wherever a submission can.

    That is in errors, cells' names, reports and messages.
    """

    def hostile(payload):
        notebook = lab.handed_in(square=f"raise ValueError({payload!r})", total="return 0")
        notebook.cells.insert(
            1,
            new_code_cell(
                f"""
from IPython.display import HTML, display
print({payload!r})
display(HTML({payload!r}))
from manyhands.checks import Report
honest = Report.criterion
def louder(self, name, *, mistake=None, **rest):
    return honest(self, {payload!r} if name == "other" else name, mistake={payload!r}, rank={payload!r}, **rest)
Report.criterion = louder
raise type("E", (Exception,), dict(__str__=lambda self: {payload!r}))()""",
                metadata={
                    "nbgrader": {
                        "grade_id": payload,
                        "solution": True,
                        "grade": False,
                        "locked": False,
                        "schema_version": 3,
                    }
                },
            ),
        )
        notebook.metadata["kernelspec"] = {
            "name": payload,
            "language": payload,
            "display_name": payload,
        }
        return notebook

    return hostile


@pytest.mark.parametrize("name", PAYLOADS)
def test_what_is_shown_is_text_only(lab, attack, hostile, name):
    path = lab.submit(lab.handed_in())
    path.write_text(json.dumps(hostile(PAYLOADS[name])))
    got = attack(path)
    assert got.points == (0, 4) and got.grade.notes and got.grade.criteria[0].detail
    text, page = grade_report.as_text(got.grade), grade_report.as_html(got.grade)
    text.encode(), page.encode(), json.dumps(grade_report.as_data(got.grade)).encode()
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    assert Tags(page).tags <= {"p", "b", "table", "tr", "td", "small", "br"}
    assert Tags(page).attributes <= {"style"}
    assert text.splitlines()[0] == "90_tiny: 0 of 4 points" and len(text) < 10_000
    assert not re.search(r"^(90_tiny: 4|Full marks|  PASS)", text, re.MULTILINE)


def test_a_broken_notebooks_verdict_is_text_only(lab, attack):
    path = lab.folder / "work" / "\x1b[2J<script>.ipynb"
    path.parent.mkdir()
    path.write_text(
        '{"cells": [{"cell_type": "\\u001b[2J<script>", "x": 1}], "nbformat": 4, "nbformat_minor": '
        '5, "metadata": 3}'
    )
    got = attack(path)
    assert got.grade.verdict and got.points == (0, 4)
    assert "\x1b" not in grade_report.as_text(got.grade) and not Tags(
        grade_report.as_html(got.grade)
    ).tags & {"script"}


BROKEN = {
    "a tag that is no list": lambda notebook: notebook.cells[2].metadata.update(tags=5),
    "a mark that cannot be a key": lambda notebook: notebook.cells[1].metadata.update(
        nbgrader={"grade_id": ["square"]}
    ),
    "a mark that is a mapping": lambda notebook: notebook.cells[1].metadata.update(
        nbgrader={"grade_id": {"square": 1}}
    ),
    "a mark that is no mapping": lambda notebook: notebook.cells[1].metadata.update(nbgrader=[1]),
    "a kernel's name that is no text": lambda notebook: notebook.metadata.update(
        kernelspec={"name": [], "language": {}}
    ),
    "metadata nested deeply": lambda notebook: notebook.cells[1].metadata.update(deep=nested(200)),
}


def nested(depth):
    return {"a": nested(depth - 1)} if depth else 1


@pytest.mark.parametrize("name", BROKEN)
def test_metadata_that_is_not_what_it_should_be(lab, attack, name):
    notebook = lab.handed_in()
    path = lab.submit(notebook)
    BROKEN[name](notebook)
    path.write_text(json.dumps(nbformat.from_dict(notebook)))
    assert attack(path).points == (4, 4)

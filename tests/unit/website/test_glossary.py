"""The glossary's entries, as the site reads them, and how it finds its terms in a text."""

import re
from types import SimpleNamespace

import pytest
from docutils import nodes

from manyhands.website import glossary
from manyhands.website.site_search import CourseEnglish

TEXT = """# Glossary

* **all-reduce**: a collective in which *each* rank sums `x`
  (unit [04]).
* **ZeRO**: shards (unit [16](../notebooks/16.ipynb)).
* **grouped-query attention (GQA)**: fewer heads.
* **rank**: a process.

Here follows a text: **no term**: of no list.
"""


def test_entries_are_read_without_their_marks():
    assert glossary.entries(TEXT) == {
        "all-reduce": "a collective in which each rank sums x (unit 04).",
        "ZeRO": "shards (unit 16).",
        "grouped-query attention (GQA)": "fewer heads.",
        "rank": "a process.",
    }


def test_an_address_is_made_of_letters_and_hyphens():
    assert (
        glossary.anchor("grouped-query attention (GQA)") == "grouped-query-attention-gqa"
        and glossary.anchor("TF_CONFIG") == "tf-config"
    )


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        ("An all-reduce, and an all-reduce", ["all-reduce"]),
        ("All-reduces sum.", ["All-reduces"]),
        ("an all reduce", ["all reduce"]),
        ("zeros and ZeRO", ["ZeRO"]),
        ("Grouped-query attention", ["Grouped-query attention"]),
        ("no-all-reduce-here", []),
        ("a rank", []),
    ],
)
def test_the_first_occurrence_of_a_term_is_linked(tmp_path, text, linked):
    (tmp_path / "glossary.md").write_text(TEXT)
    app = SimpleNamespace(
        env=SimpleNamespace(doc2path=lambda page: tmp_path / "glossary.md"),
        builder=SimpleNamespace(get_relative_uri=lambda here, page: "../docs/GLOSSARY.html"),
    )
    section = nodes.section(
        "",
        nodes.title("", "All-reduce"),
        nodes.paragraph("", "", nodes.literal("", "all-reduce"), nodes.Text(" " + text)),
    )
    glossary.link_terms(app, section, "labs/04_x/04_x")
    assert [
        link.astext() for link in section.findall(nodes.reference)
    ] == linked and section.astext().endswith(text)
    glossary.link_terms(app, section, "docs/SETUP")
    assert len(list(section.findall(nodes.reference))) == len(linked)


def test_a_compound_is_a_word_of_the_search():
    english = CourseEnglish({})
    assert english.split("the all-reduce, all_reduce") == [
        "the",
        "all-reduce",
        "all",
        "reduce",
        "all_reduce",
    ]
    assert re.search(r"all-\$1", english.js_splitter_code)

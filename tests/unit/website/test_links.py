"""Links of a text, as the site has them."""

from pathlib import Path

import pytest

from manyhands.website.links import Links

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("page", "text", "becomes"),
    [
        ("docs/SETUP.md", "[units](../README.md#units)", "[units](../README.md#units)"),
        ("README.md", "[lab](labs/06_ddp)", "[lab](labs/06_ddp/06_ddp.ipynb)"),
        (
            "notebooks/06_ddp.ipynb",
            "[lab](../labs/06_ddp/06_ddp.ipynb)",
            "[lab](../labs/06_ddp/06_ddp.ipynb)",
        ),
        (
            "notebooks/06_ddp.ipynb",
            "[deck](../slides/built/06_ddp.pdf)",
            '<a href="../slides/built/06_ddp.pdf">deck</a>',
        ),
        ("notebooks/06_ddp.ipynb", "[Start](../Start_Here.md)", "[Start](../index.md)"),
        (
            "docs/CHAINERMN.md",
            "[`tests/carried_over/`](../tests/carried_over)",
            "`tests/carried_over/`",
        ),
        ("docs/SYSTEMS.md", "[06]: ../notebooks/06_ddp.ipynb", "[06]: ../notebooks/06_ddp.ipynb"),
        (
            "README.md",
            "[here](#start), [there](https://example.org/a.md)",
            "[here](#start), [there](https://example.org/a.md)",
        ),
        (
            "README.md",
            "`[x](y.md)`\n```\n[x](y.md)\n```\n[`[x]`](LICENSE)",
            "`[x](y.md)`\n```\n[x](y.md)\n```\n[`[x]`](LICENSE)",
        ),
        (
            "README.md",
            (
                "[![CI](https://example.org/ci.svg)](https://example.org) and <img "
                "src='https://example.org/a.gif'> no more"
            ),
            " and  no more",
        ),
    ],
)
def test_a_link_leads_where_the_site_has_it(page, text, becomes):
    assert Links(page, ROOT).mended(text) == becomes


def test_a_link_to_a_unit_that_is_planned_leads_to_the_list():
    links = Links("docs/SYSTEMS.md", ROOT)
    links.planned = {"21_next"}
    assert links.mended("[21]: ../notebooks/21_next.ipynb") == "[21]: ../index.md#units"


def test_what_is_linked_to_and_shown_is_asked_for():
    links = Links("docs/SETUP.md", ROOT)
    links.mended(
        "[a](../notebooks/scripts/06_train.py) ![b](images/course.png) <img "
        'src="images/course.gif"> [c](#here) [d](https://example.org)'
    )
    assert links.asked == {
        "notebooks/scripts/06_train.py",
        "docs/images/course.png",
        "docs/images/course.gif",
    }

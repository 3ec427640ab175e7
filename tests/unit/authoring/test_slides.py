"""Decks: what they are made from is known by hashes, pictures go into the page, nothing is fetched.

Marp is played by a script.
"""

import os

import pytest

from manyhands.authoring import BuildError, slides
from manyhands.authoring.command import slides as command

MARP = """#!/bin/sh
for target; do :; done
while [ $# -gt 0 ]; do case "$1" in *.md) deck=$1;; -o) target=$2;; esac; shift; done
cp "$deck" "$target"
"""
DECK = '# Tiny\n\n![w:300](figures/a.svg)\n\n<img src="figures/a.svg"/>\n'


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course with one deck and a stand-in for Marp that copies the text to the page."""
    folder = tmp_path / "slides"
    program = folder / "node_modules/.bin/marp"
    program.parent.mkdir(parents=True)
    program.write_text(MARP)
    program.chmod(0o755)
    (tmp_path / "sources").mkdir()
    (folder / "figures").mkdir()
    (folder / "figures/a.svg").write_text("<svg/>")
    (folder / "90_tiny.md").write_text(DECK)
    for name in ("theme.css", "marp.config.mjs", "package.json", "package-lock.json"):
        (folder / name).write_text("x")
    monkeypatch.setenv("CHROME_PATH", "/nowhere/chromium")
    monkeypatch.setenv("MANYHANDS_ROOT", str(tmp_path))
    return tmp_path


def differences(course):
    return [(drift.path, drift.what) for drift in slides.drifts(course)]


def test_a_deck_is_built_once_with_its_pictures_inside(course):
    assert differences(course) == [("slides/built/90_tiny.html", "was never built")]
    assert [path.name for path in slides.build(course)] == ["90_tiny.html", "90_tiny.pdf"]
    assert (
        '<img src="data:image/svg+xml;base64,PHN2Zy8+"/>'
        in (course / "slides/built/90_tiny.html").read_text()
    )
    assert differences(course) == [] and slides.build(course) == []


@pytest.mark.parametrize("name", ["90_tiny.md", "figures/a.svg", "theme.css", "package-lock.json"])
def test_a_change_of_anything_it_is_made_from_is_drift(course, name):
    slides.build(course)
    with open(course / "slides" / name, "a") as file:
        file.write("\n")
    assert differences(course) == [
        ("slides/90_tiny.md", "it, a picture or the theme changed after the deck was built")
    ]
    slides.build(course)
    assert differences(course) == []


def test_an_edit_of_the_result_is_drift_and_ownerless_decks_are_named(course):
    slides.build(course)
    (course / "slides/built/90_tiny.pdf").write_text("edited")
    (course / "slides/built/91_gone.html").write_text("")
    assert differences(course) == [
        ("slides/built/90_tiny.pdf", "is not what was built"),
        ("slides/built/91_gone.html", "it has no source in slides/"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        '<img src="https://example.org/a.svg">',
        "<style>@import 'http://example.org/a.css'</style>",
        "<p style='background: url(https://example.org)'>",
    ],
)
def test_a_deck_that_needs_the_network_is_refused(course, line):
    (course / "slides/90_tiny.md").write_text(line)
    with pytest.raises(BuildError, match="loads something from the network"):
        slides.build(course)


def test_a_link_is_no_load(course):
    (course / "slides/90_tiny.md").write_text('<a href="https://example.org">paper</a>')
    assert slides.build(course)


def test_a_missing_picture_is_named(course):
    (course / "slides/figures/a.svg").unlink()
    with pytest.raises(BuildError, match="slides/figures/a.svg, which is not there"):
        slides.build(course)


def test_without_node_the_command_says_what_to_install(course, monkeypatch, capsys):
    (course / "slides/node_modules/.bin/marp").unlink()
    monkeypatch.setenv("PATH", os.devnull)
    assert command([]) == 1
    assert "apt-get install nodejs npm" in capsys.readouterr().err


def test_a_changed_list_of_packages_is_installed_anew(course, monkeypatch, capsys):
    installed = course / "slides/node_modules/.package-lock.json"
    installed.write_text("{}")
    assert command([]) == 0
    os.utime(installed, (0, 0))
    (course / "slides/90_tiny.md").write_text("# Other")
    monkeypatch.setenv("PATH", os.devnull)
    assert command([]) == 1 and "needs Node.js" in capsys.readouterr().err


def test_without_a_browser_the_command_says_what_to_install(course, monkeypatch, capsys):
    monkeypatch.delenv("CHROME_PATH")
    monkeypatch.setenv("PATH", os.devnull)
    assert command(["90"]) == 1
    assert "apt-get install chromium" in capsys.readouterr().err


def test_an_unknown_deck_is_named(course, capsys):
    assert command(["12"]) == 2
    assert "there is no deck '12' in slides/; the decks: 90_tiny" in capsys.readouterr().err


SVG = """<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" width="9pt" height="9pt" viewBox="0 0 9 9">
<title>a</title><style>*{fill: red}</style>

<defs><path id="p"/></defs><use href="#p"/><rect clip-path="url(#p)"/>
</svg>
"""


def test_an_svg_on_a_line_of_its_own_is_drawn_into_the_slide(course):
    (course / "slides/figures/a.svg").write_text(SVG)
    (course / "slides/90_tiny.md").write_text(
        '# Tiny\n\n![what "a" shows](figures/a.svg)\n\nIn a text ![w:9](figures/a.svg) it stays a '
        "picture.\n"
    )
    slides.build(course)
    page = (course / "slides/built/90_tiny.html").read_text()
    assert (
        '<div class="picture">\n<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" '
        'role="img" aria-label="what &quot;a&quot; shows">' in page
    )
    # no blank line: it would end the drawing
    assert (
        '<defs><path id="a-p"/></defs><use href="#a-p"/><rect '
        'clip-path="url(#a-p)"/>\n</svg>\n</div>' in page
    )
    assert "<style>" not in page and "<title>" not in page and "![w:9](figures/a.svg)" in page


def test_a_drawing_that_is_missing_is_named(course):
    with pytest.raises(BuildError, match="slides/figures/b.svg, which is not there"):
        slides.with_drawings("![b](figures/b.svg)", course / "slides")


def test_letters_of_the_theme_go_into_the_page(course):
    (course / "slides/a.woff2").write_bytes(b"letters")
    assert (
        slides.inlined("src: url(a.woff2)", course / "slides")
        == "src: url(data:font/woff2;base64,bGV0dGVycw==)"
    )


def test_a_marp_that_takes_too_long_is_told(tmp_path, monkeypatch):
    marp = tmp_path / "marp"
    marp.write_text("#!/bin/sh\nexec sleep 30\n")
    marp.chmod(0o755)
    monkeypatch.setattr(slides, "MARP_LIMIT_S", 0.1)
    with pytest.raises(
        BuildError, match="Marp has not made html from slides/06_ddp.md within 0.1 s"
    ):
        slides._run(marp, "chromium", tmp_path / "06_ddp.md", tmp_path / "06_ddp.html")

"""A Sphinx extension for what the course's pages have beyond those of others.

Pictures are named by what they show, predictions are forms, the cheat sheet is on one sheet, and a
search without a server shows excerpts.
"""

from __future__ import annotations

import html
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes

from manyhands.learner import outcomes
from manyhands.units import find_root
from manyhands.website import glossary, heads, site_search, try_it, web_predictions

if TYPE_CHECKING:
    from sphinx.application import Sphinx

TITLE = "{http://www.w3.org/2000/svg}title"
PRINTED = "docs/CHEAT_SHEET"
TEXTS = "search_texts.js"
MARKUP = re.compile(
    r'<a class="headerlink".*?</a>|<(script|style|svg)\b.*?</\1>|<[^>]+>', re.DOTALL
)


def title_of(path: str | Path) -> str | None:
    """Return what an SVG file says it shows: its `aria-label`, else its `<title>`.

    None if it says nothing.
    """
    picture = ElementTree.parse(path).getroot()
    title = picture.get("aria-label") or picture.findtext(TITLE) or picture.findtext("title")
    return " ".join(title.split()) if title else None


def name_pictures(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """MyST-NB names a picture after its file; its own title says more."""
    for image in doctree.findall(nodes.image):
        for path in (
            Path(app.srcdir, image["uri"]),
            Path(app.outdir, image["uri"]),
            Path(image["uri"]),
        ):
            if path.suffix == ".svg" and path.is_file():
                image["alt"] = title_of(path) or ""
                break


def ask_for_predictions(app: Sphinx, docname: str, source: list[str]) -> None:
    """Let tutorials ask for predictions, and have figures to play with.

    The notebook that a reader can download stays as it is.
    """
    if docname.startswith("notebooks/") and docname != "notebooks/index":
        source[0] = try_it.with_figure(docname, source[0])
        source[0] = web_predictions.with_forms(source[0], outcomes.read(find_root()))


def add_files(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """What one page alone needs."""
    if pagename == PRINTED:
        app.add_css_file("one_sheet.css", priority=900)  # over course.css
    if pagename == "search":
        app.add_js_file(TEXTS)
        app.add_js_file("search_from_disk.js")
    if pagename in try_it.FIGURES:
        app.add_js_file(try_it.FIGURES[pagename][2])
    if pagename.startswith(glossary.SHOWN_ON):
        app.add_js_file(glossary.ENTRIES)
        app.add_js_file("glossary.js")


def write_texts(app: Sphinx, failed: Exception | None) -> None:
    """Write the texts of all pages as a script.

    A page that was opened from the disk may not fetch another one.
    """
    if failed is None and app.builder.format == "html":
        texts = {
            app.builder.get_target_uri(name): _text_of(app.env.get_doctree(name))
            for name in sorted(app.env.found_docs)
        }
        text = f"const COURSE_TEXTS = {json.dumps(texts, ensure_ascii=False)};\n"
        Path(app.outdir, "_static", TEXTS).write_text(text, encoding="utf-8")


def _text_of(doctree: nodes.document) -> str:
    """The text of a page. Of its HTML, only what a reader sees."""
    for raw in list(doctree.findall(nodes.raw)):
        shown = MARKUP.sub(" ", raw.astext()) if "html" in raw["format"].split() else ""
        raw.parent.replace(raw, nodes.Text(html.unescape(shown)))
    return doctree.astext()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx what the course's pages need."""
    site_search.setup(app)
    app.connect("source-read", ask_for_predictions)
    app.connect("doctree-read", glossary.give_addresses)
    app.connect("doctree-resolved", name_pictures)
    app.connect("doctree-resolved", glossary.link_terms)
    app.connect("html-page-context", add_files)
    app.connect("html-page-context", heads.describe)
    app.connect("build-finished", write_texts)
    app.connect("build-finished", glossary.write_entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

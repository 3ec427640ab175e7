"""A Sphinx extension: what a notebook's picture says of itself becomes its alternative text; print styles of one page."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from docutils import nodes

TITLE = "{http://www.w3.org/2000/svg}title"
PRINTED = "docs/CHEAT_SHEET"  # on one sheet


def title_of(path):
    """What an SVG file says it shows: its `aria-label`, else its `<title>`; None if it says nothing."""
    picture = ElementTree.parse(path).getroot()
    found = picture.get("aria-label") or picture.findtext(TITLE) or picture.findtext("title")
    return " ".join(found.split()) if found else None


def name_pictures(app, doctree):
    """MyST-NB names a picture after its file; its own title says more."""
    for image in doctree.findall(nodes.image):
        for path in (Path(app.srcdir, image["uri"]), Path(app.outdir, image["uri"]), Path(image["uri"])):
            if path.suffix == ".svg" and path.is_file():
                image["alt"] = title_of(path) or ""
                break


def print_on_one_sheet(app, pagename, templatename, context, doctree):
    if pagename == PRINTED:
        app.add_css_file("one_sheet.css", priority=900)  # over course.css


def setup(app):
    app.connect("doctree-read", name_pictures, priority=100)
    app.connect("html-page-context", print_on_one_sheet)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""What a page says of itself to those that link to it.

This also takes out what the theme writes into pages and nobody needs.
"""

from __future__ import annotations

import re
from html import escape, unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

LONGEST = 200  # letters of a description
FIRST_TITLE = "Distributed training, by doing it"
CARD = "_static/card.png"  # 1200 x 630
STRAY = ("_static/webpack-macros.html",)  # a template of the theme's


def describe(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Write the page's description, also as OpenGraph data.

    A picture needs the site's address (`--address`).
    """
    summary = description(doctree) if doctree is not None else ""
    title = (
        FIRST_TITLE
        if pagename == app.config.root_doc
        else re.sub("<[^>]*>", "", context.get("title") or "")
    )
    if pagename == app.config.root_doc:
        context["title"] = title
    properties = {
        "og:type": "website",
        "og:site_name": app.config.project,
        "og:title": title,
        "og:description": summary,
    }
    if address := app.config.html_baseurl:
        properties |= {
            "og:url": f"{address.rstrip('/')}/{app.builder.get_target_uri(pagename)}",
            "og:image": f"{address.rstrip('/')}/{CARD}",
            "og:image:width": "1200",
            "og:image:height": "630",
        }
    tags = [f'<meta name="description" content="{_attribute(summary)}" />'] if summary else []
    tags += [
        f'<meta property="{name}" content="{_attribute(text)}" />'
        for name, text in properties.items()
        if text
    ]
    context["metatags"] = "\n    ".join(["", *tags])


def _attribute(text: str) -> str:
    """Text as an attribute's value; a title that Sphinx hands over is escaped already."""
    return escape(unescape(text))


def description(doctree: nodes.document) -> str:
    """Return the first paragraph that has a sentence, cut at a word.

    For the first page, which is HTML, it is its lead.
    """
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if len(text) > 40 and not isinstance(paragraph.parent, nodes.entry):
            return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " ..."
    html = "".join(raw.astext() for raw in doctree.findall(nodes.raw))
    lead = re.search(r'<p class="lead">(.*?)</p>', html, re.DOTALL)
    return " ".join(re.sub("<[^>]*>", "", lead[1]).split()) if lead else ""


def tidy(folder: str | Path) -> None:
    """Take out of the pages in `folder` what nobody needs.

    That is a second and third viewport, scripts that are loaded before they are asked for (which a
    browser refuses from the disk), and table heads without text.
    """
    for name in STRAY:
        Path(folder, name).unlink(missing_ok=True)
    for path in Path(folder).rglob("*.html"):
        if not {"built", "_static"} & set(path.relative_to(folder).parts):
            path.write_text(tidied(path.read_text(encoding="utf-8")), encoding="utf-8")


def tidied(page: str) -> str:
    """Return the page's HTML without what nobody needs in it."""
    head, end, body = page.partition("</head>")
    head = re.sub(r'\s*<link rel="preload"[^>]*>', "", head)
    first, mark, rest = head.partition('<meta name="viewport"')
    head = first + mark + re.sub(r'\s*<meta name="viewport"[^>]*>', "", rest)
    return (
        head
        + end
        + re.sub(r'<th class="head([^"]*)">(?:<p></p>)?</th>', r'<td class="head\1"></td>', body)
    )

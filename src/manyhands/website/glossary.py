"""The glossary on the site: an address for each term.

Its entries appear where units use them, and in the search.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx


PAGE = "docs/GLOSSARY"
ENTRIES = "glossary_entries.js"
SHOWN_ON = ("notebooks/", "labs/")
_ENTRY = re.compile(r"\*\*(?P<term>[^*]+)\*\*: (?P<text>.*)", re.DOTALL)
_SKIPPED = (
    nodes.reference,
    nodes.literal,
    nodes.title,
    nodes.literal_block,
    nodes.raw,
    nodes.image,
    nodes.math,
    nodes.strong,
    nodes.table,
)
# words that most sentences use in another sense, or so often that a reader needs no explanation
TOO_COMMON = set(
    """capacity challenge chief clinic commit delegate efficiency entry expert fusion gather generation
                 heal judge layout link mesh node overlap partial placement rank record reduce ring scatter stage
                 strategy""".split()
)


def anchor(term: str) -> str:
    """The address of a term on the page: `all-reduce`, `grouped-query-attention-gqa`."""
    return re.sub(r"[^a-z0-9]+", "-", term.lower()).strip("-")


@cache
def entries(text: str) -> dict[str, str]:
    """{term: explanation} of the glossary's Markdown: its bullets, without their marks."""
    explanations: dict[str, str] = {}
    for bullet in re.split(r"^\* ", text, flags=re.MULTILINE)[1:]:
        if entry := _ENTRY.match(bullet.partition("\n\n")[0]):
            explanation = re.sub(
                r"\[([^\]]+)\](\([^)]*\))?|[*`]", lambda link: link[1] or "", entry["text"]
            )
            explanations[entry["term"]] = " ".join(explanation.split())
    return explanations


def spellings(term: str) -> set[str]:
    """Return how a text writes a term.

    It may be without what is in brackets or after a comma, without a hyphen, or in the plural.
    """
    short = re.sub(r"\s*\(.*\)|,.*", "", term)
    return {form for name in (term, short) for form in (name, name + "s", name.replace("-", " "))}


def write_entries(app: Sphinx, failed: Exception | None) -> None:
    """Write the entries as a script.

    A page that was opened from the disk may not fetch another one.
    """
    if failed is None and app.builder.format == "html":
        known = {anchor(term): [term, explanation] for term, explanation in _known(app).items()}
        text = json.dumps(known, ensure_ascii=False)
        Path(app.outdir, "_static", ENTRIES).write_text(
            f"const GLOSSARY = {text};\n", encoding="utf-8"
        )


def give_addresses(app: Sphinx, doctree: nodes.document) -> None:
    """Each entry of the glossary gets an anchor.

    A search for its term finds it and the unit that it names first.
    """
    page = app.env.docname
    if page == PAGE:
        for item in doctree.findall(nodes.list_item):
            term = item.next_node(nodes.strong)
            if term is not None and item.astext().startswith(f"{term.astext()}:"):
                name = anchor(term.astext())
                item["ids"].append(name)
                item.insert(0, _indexed([term.astext()], name))
                link = f'<a class="headerlink" href="#{name}" title="Link to this term">#</a>'
                term.parent.append(nodes.raw("", link, format="html"))
    elif unit := re.fullmatch(r"notebooks/(\d\d)_\w+", page):
        terms = [
            term for term, explanation in _known(app).items() if f"unit {unit[1]}" in explanation
        ]
        section = doctree.next_node(nodes.section)
        if terms and section is not None:
            # the page itself, which the search must not list twice
            section.insert(0, _indexed(terms, ""))


def _indexed(terms: Iterable[str], name: str) -> addnodes.index:
    written = {term.replace("-", mark) for term in terms for mark in ("-", " ", "_", "")}
    return addnodes.index(
        entries=[("single", form, name, "main", None) for form in sorted(written)]
    )


def _known(app: Sphinx) -> dict[str, str]:
    """{term: explanation} of the site's glossary; empty if it has none."""
    path = Path(app.env.doc2path(PAGE))
    return entries(path.read_text(encoding="utf-8")) if path.is_file() else {}


def link_terms(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link the first occurrence of each term in a unit to its entry.

    The page shows the entry on hover and on focus.
    """
    known = _known(app)
    if not known or not docname.startswith(SHOWN_ON) or docname.endswith("/index"):
        return
    forms = {form: term for term in known if term not in TOO_COMMON for form in spellings(term)}
    longest_first = "|".join(map(_any_case, sorted(forms, key=len, reverse=True)))
    pattern = re.compile(rf"(?<![\w-])({longest_first})(?![\w-])")
    page = app.builder.get_relative_uri(docname, PAGE)
    seen: set[str] = set()
    for text in list(doctree.findall(nodes.Text)):
        if any(isinstance(parent, _SKIPPED) for parent in _above(text)):
            continue
        parts: list[nodes.Node] = []
        end = 0
        for match in pattern.finditer(text.astext()):
            term = forms.get(match[0]) or forms[match[0].lower()]
            if term in seen:
                continue
            seen.add(term)
            parts.append(nodes.Text(text.astext()[end : match.start()]))
            address = f"{page}#{anchor(term)}"
            parts.append(
                nodes.reference("", match[0], refuri=address, internal=True, classes=["term"])
            )
            end = match.end()
        if parts:
            text.parent.replace(
                text, [part for part in (*parts, nodes.Text(text.astext()[end:])) if part.astext()]
            )


def _any_case(form: str) -> str:
    """A pattern for a form: "Zeros" is not ZeRO, but a sentence may begin with "Barriers"."""
    return f"(?i:{re.escape(form)})" if form == form.lower() else re.escape(form)


def _above(node: Any) -> Iterator[Any]:
    while (node := node.parent) is not None:
        yield node

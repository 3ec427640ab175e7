"""Figures that a reader of a page can play with, where a notebook has a run instead."""

import json

TRY_IT = "### Try it here"
WAIT_FOR_GRAPH = f"""{TRY_IT}

Choose what each of the four ranks calls, first and second. The ranks of this figure follow the rules that you have
just met: a collective waits until every rank has made the same call, and a message waits for its partner. Can you build
a hang that ends at one rank, one that goes in a circle, and a program in which every rank finishes?

<div class="wait-for-graph"><p>The figure needs JavaScript.</p></div>

"""
FIGURES = {  # page -> before which heading, what, and its script
    "notebooks/00_preflight": ("## Healing", WAIT_FOR_GRAPH, "wait_for_graph.js"),
}


def with_figure(page: str, text: str) -> str:
    """The notebook `text` of a page with its figure, if the page has one."""
    if page not in FIGURES:
        return text
    heading, figure, _ = FIGURES[page]
    try:
        notebook = json.loads(text)
        for cell in notebook["cells"]:
            source = "\n" + "".join(cell["source"])
            if cell["cell_type"] == "markdown" and f"\n{heading}" in source:
                cell["source"] = source.replace(f"\n{heading}", f"\n{figure}{heading}", 1).lstrip(
                    "\n"
                )
                break
    except (ValueError, KeyError, TypeError):  # reported elsewhere
        return text
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"

"""How the texts of the course read, in figures.

They find compressed prose, and they do not prove good prose.

    python -m manyhands.authoring.prose            # the figures of each group of texts, and whether they meet the limits
    python -m manyhands.authoring.prose --list     # every habit, with its place and what to write instead

Code, tables, headings, comments, formulas, references and the lines on minutes do not count. A
habit is a turn of phrase that makes a reader stumble ("Prose" in CONTRIBUTING.md). A well-edited
textbook has about half of what the limits allow. Decks may be terse, so of their figures only the
habits count.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from manyhands.authoring.reading_time import cells
from manyhands.units import find_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


class Figures(NamedTuple):
    """How some texts read: the first two per 100 words, the last per 10,000."""

    colons: float
    connectives: float
    short: float
    habits: float


# connectives: at least, all others: at most
LIMITS = Figures(colons=1.2, connectives=0.9, short=0.08, habits=15.0)
TERSE = ("decks",)
SHORT = 5  # words
MESSAGE = 25  # characters that a string of a module of messages has at least
MODULES_OF_MESSAGES = ("words", "sentences", "messages", "rehearsal_report")

CONNECTIVES = re.compile(
    r"\b(because|since|although|though|however|therefore|whereas|while|thus|hence|moreover|"
    r"instead|for example|for instance|that is|so that|which means|as a result|in contrast|"
    r"otherwise|unless)\b",
    re.I,
)
HABITS = {  # what to look for -> what to write instead
    r"\b(stands?|stood|lies|lay)\b(?!-in| (alone|out|for|in line|still|by|up))": (
        "is, appears, is defined, is stored"
    ),
    r"\b(that|those) of\b": "repeat the noun",
    r"\bin (the )?place of\b": "instead of",
    r"\b(in another|with other|other (weights|rows|numbers|ones)|another (order|rate|system|objective|number|step))\b": (
        "a different one, if the sense is 'different'"
    ),
    r"\bof (its|their|your|one's|my|our|his) own\b": "its own tape, a separate tape",
    r"\b(nobody|everybody|somebody|anybody|whoever)\b": "no rank, every process, someone who",
    r"\b(is|are|was|were|be) there[.,;:)]": "exists, is available, has arrived",
    r"\b(has come|have come|comes? in|came in|has gone|have gone|comes to its end)\b": (
        "arrives, is lost, ends"
    ),
    r"\b(a|one|this|that|each|whole) training\b(?!"
    r" (loop|run|step|script|set|data|example|job|program|process|sample|"
    r"accuracy|mode|code|batch|epoch|time|system|framework|objective|curve|loss))|\btrainings\b": (
        "a training run"
    ),
    r"(?:(?<=[.:;] )|(?<=\n))Who [a-z]+ (?![^.?!]*\?)|\b(for|with|to|of|than) who\b": (
        "anyone who, a rank that, if you"
    ),
    r"\b(for ever|seldom|likewise|albeit|whence|midst|foretell|shall|dear(er|est)?|beside)\b": (
        "forever, rarely, also, must, predict, expensive, next to"
    ),
    r"\b(is|are|was|were|be) told\b(?! (to|that|about|apart))": "is reported",
    r"\b(is|are) no"
    r" (number|time|page|list|dict|rank|tensor|function|class|file|folder|mistake|error|run|proof|"
    r"evidence|ring)\b": "is not a number",
    r"\b[Ll]ame\b": "slow rank, straggler",
    r"\b(as|of|than|to) one process\b": "what a single process computes",
    r"\b(gradients?|steps?)\b[^.?!]{0,30}\btoo (long|short)\b": "too large, too small",
    r"(?:(?<=[.?!] )|(?<=\n))(And|How|What|Which|Who|Why)(?: [\w`']+){0,3}\?": (
        "a full question with its verb and unit"
    ),
}


def groups(root: str | Path) -> dict[str, dict[Path, str]]:
    """The texts that people read, {group: {path: text}}."""
    folder = Path(root)

    def read(*patterns: str, how: Callable[[Path], str] = Path.read_text) -> dict[Path, str]:
        return {path: how(path) for pattern in patterns for path in sorted(folder.glob(pattern))}

    modules = (f"src/manyhands/**/{name}.py" for name in MODULES_OF_MESSAGES)
    return {
        "tutorials": read("sources/tutorial/[0-9]*.py", how=_markdown),
        "labs": read("sources/labs/[0-9]*.py", how=_markdown),
        "decks": read("slides/[0-9]*.md"),
        "docs": read(
            "README.md",
            "CONTRIBUTING.md",
            "CHANGELOG.md",
            "SECURITY.md",
            "CODE_OF_CONDUCT.md",
            "docs/*.md",
        ),
        "messages": read(*modules, how=_strings),
    }


def _markdown(path: Path) -> str:
    return "\n\n".join(body for is_text, body in cells(path.read_text()) if is_text)


def _strings(path: Path) -> str:
    """The strings of a module that read as sentences; of an f-string, its fixed parts."""
    tree = ast.parse(path.read_text())
    strings = (
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    texts = (text.strip() for text in strings if len(text) >= MESSAGE and " " in text.strip())
    return "\n".join(text if text.endswith((".", "?", "!")) else text + "." for text in texts)


def plain(text: str) -> str:
    """The running prose of Markdown."""
    text = re.sub(r"```.*?```|<!--(?!\s*\d+ min).*?-->|\$\$.*?\$\$", " ", text, flags=re.S)
    text = re.sub(r"^\s*(\|.*|#.*|!\[.*|---.*|\[[^\]]+\]: .*)$", " ", text, flags=re.M)
    text = re.sub(r"<[^>]+>|<!--|-->", " ", text)
    text = re.sub(r"^\*\*References\.\*\*.*?(?=\n\s*\n|\Z)", " ", text, flags=re.M | re.S)
    text = re.sub(r"\*\*(Minutes|Ranks|Points):\*\* [^.]*\.|\*Difficulty [^*]*\*", " ", text)
    text = re.sub(r"\bet al\.", "et al", text)
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return re.sub(r"\$[^$\n]*\$", "x", text)


def figures(texts: Iterable[str]) -> Figures:
    """The `Figures` of some texts together."""
    whole = "\n\n".join(map(plain, texts))
    sentences = [
        s for s in re.split(r"(?<=[.?!])\s+", re.sub(r"\s+", " ", whole)) if len(s.split()) > 1
    ]
    words, line = sum(len(s.split()) for s in sentences) or 1, " ".join(sentences)
    return Figures(
        colons=100 * len(re.findall(r"[:;] ", line)) / words,
        connectives=100 * len(CONNECTIVES.findall(line)) / words,
        short=sum(len(s.split()) <= SHORT for s in sentences) / max(1, len(sentences)),
        habits=10_000 * sum(len(re.findall(habit, whole, re.I)) for habit in HABITS) / words,
    )


def hits(text: str) -> Iterator[tuple[str, str]]:
    """Each habit in a text: pairs (the words around it, what to write instead)."""
    prose = plain(text)
    for habit, instead in HABITS.items():
        for hit in re.finditer(habit, prose, re.I):
            yield " ".join(prose[max(0, hit.start() - 40) : hit.end() + 30].split()), instead


def misses(group: str, measured: Figures) -> list[str]:
    """The names of the figures of a group that are outside the limits."""
    looked_at = ("habits",) if group in TERSE else Figures._fields
    return [
        name
        for name in looked_at
        if (
            getattr(measured, name) < LIMITS.connectives
            if name == "connectives"
            else getattr(measured, name) > getattr(LIMITS, name)
        )
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit code is 1 if a group is outside the limits."""
    parser = argparse.ArgumentParser(
        prog="python -m manyhands.authoring.prose", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--list", action="store_true", help="each habit, with its place and what to write instead"
    )
    asked, root, outside = parser.parse_args(arguments), find_root(), False
    print(f"{'':10} : ; per 100  connectives  short sentences  habits per 10,000")
    for name, texts in groups(root).items():
        measured = figures(texts.values())
        outside |= bool(misses(name, measured))
        print(
            f"{name:10} {measured.colons:11.2f}  {measured.connectives:11.2f}  {measured.short:15.0%} "
            f" {measured.habits:17.1f}  "
            + (", ".join(misses(name, measured)) or "within the limits")
        )
        if asked.list:
            for path, text in texts.items():
                for around, instead in hits(text):
                    print(f"    {path.relative_to(root)}: ...{around}... -> {instead}")
    return int(outside)


if __name__ == "__main__":
    sys.exit(main())

"""Decks, made by Marp, which can be read without a network.

slides/NN_topic.md becomes slides/built/NN_topic.html and .pdf. What a deck was made from, and what
came out, stands as hashes in the last line of the page: so drift is found without Node.js.
"""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.authoring import BuildError, UnknownNameError, points
from manyhands.authoring.layout import UNIT_NAME
from manyhands.authoring.make import write_if_changed
from manyhands.authoring.up_to_date import Drift

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MARP_LIMIT_S = 600  # ten seconds where nothing else works
_COMMON = ("theme.css", "marp.config.mjs", "package.json", "package-lock.json")
_PICTURE = re.compile(
    r"""(src="|url\((?:&quot;|"|')?)(?!data:|https?:|#)([^"'()&]+\.(?:svg|png|jpe?g|gif|woff2))"""
)
_IN_MARKDOWN = re.compile(
    r"""(?:\]\(|src=["']|url\(["']?)\s*(?!data:|https?:)([^)\s"']+\.(?:svg|png|jpe?g|gif))"""
)
_FROM_THE_NETWORK = re.compile(
    r"""<(?:script|img|link|iframe|source)\b[^>]*(?:src|href)=["']?https?:|"""
    r"""url\((?:&quot;|["'])?https?:|@import\s+(?:url\()?["']?https?:"""
)
_DRAWING = re.compile(r"^!\[([^\]]*)\]\(([^)\s]+\.svg)\)$", re.M)  # an SVG on a line of its own
_NOT_FOR_A_PAGE = re.compile(
    r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", re.S
)
_SEAL = "\n<!-- made from "
_MIME = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".woff2": "font/woff2",
}


def decks(root: str | Path, wanted: Sequence[str] = ()) -> list[Path]:
    """The text sources of the decks asked for ("06", "06_ddp"), all of them if none is named."""
    existing = [
        path
        for path in sorted((Path(root) / "slides").glob("*.md"))
        if UNIT_NAME.fullmatch(path.stem)
    ]
    if not wanted:
        return existing
    chosen = [
        path for path in existing if any(word in (path.stem, path.stem[:2]) for word in wanted)
    ]
    if not chosen:
        raise UnknownNameError(
            f"there is no deck {' '.join(wanted)!r} in slides/; "
            f"the decks: {', '.join(p.stem for p in existing)}"
        )
    return chosen


def build(
    root: str | Path,
    wanted: Sequence[str] = (),
    report: Callable[[str], object] = lambda text: None,
) -> list[Path]:
    """Make the decks whose sources or results have changed; the list of files written.

    `report` hears which one is being made.
    """
    written = []
    stale = [deck for deck in decks(root, wanted) if _drift_of(deck)]
    for deck in stale:
        for mistake in _points_mistakes(deck):
            raise BuildError(f"slides/{deck.name}: {mistake}")
    if stale:
        marp, browser = _marp(Path(root), report), find_browser()
    for number, deck in enumerate(stale, 1):
        report(f"{deck.stem}: deck {number} of {len(stale)}")
        page, paper = _convert(deck, marp, browser)
        page += _seal(sources_hash(deck), _hash(page), _hash(paper))
        made = {_built(deck, "html"): page, _built(deck, "pdf"): paper}
        written += [path for path, data in made.items() if write_if_changed(path, data)]
    return written


def drifts(root: str | Path) -> list[Drift]:
    """Decks that do not follow from their sources, found without Node.js."""
    root = Path(root)
    differences = [drift for drift in map(_drift_of, decks(root)) if drift]
    known = {deck.stem for deck in decks(root)}
    for path in sorted((root / "slides" / "built").glob("*.*")):
        if path.suffix in (".html", ".pdf") and path.stem not in known:
            differences.append(
                Drift(f"slides/built/{path.name}", "it has no source in slides/", "delete it")
            )
    return differences


def _drift_of(deck: Path) -> Drift | None:
    remedy = f"manyhands slides {deck.stem}"
    for mistake in _points_mistakes(deck):
        return Drift(f"slides/{deck.name}", mistake, "correct the deck, then " + remedy)
    page, paper = _built(deck, "html"), _built(deck, "pdf")
    for path in (page, paper):
        if not path.exists():
            return Drift(f"slides/built/{path.name}", "was never built", remedy)
    body, _, seal = page.read_bytes().rpartition(_SEAL.encode())
    for path, data in ((page, body), (paper, paper.read_bytes())):
        if _hash(data).encode() not in seal:
            return Drift(f"slides/built/{path.name}", "is not what was built", remedy)
    if sources_hash(deck).encode() not in seal:
        return Drift(
            f"slides/{deck.name}",
            "it, a picture or the theme changed after the deck was built",
            remedy,
        )
    return None


def _points_mistakes(deck: Path) -> list[str]:
    """What the deck says of its lab's points and the lab does not."""
    lab = deck.parents[1] / "sources" / "labs" / f"{deck.stem}.py"
    if not lab.exists():
        return []
    return points.deck_mistakes(deck.read_text(encoding="utf-8"), lab.read_text(encoding="utf-8"))


def _seal(sources: str, page: str, paper: str) -> bytes:
    return f"{_SEAL}{sources}, the page is {page}, the PDF is {paper} -->\n".encode()


def sources_hash(deck: Path) -> str:
    """One hash of all that a deck is made from.

    That is its text, its pictures, the theme, the settings and Marp's version.
    """
    total = hashlib.sha256()
    pictures = sorted(set(_IN_MARKDOWN.findall(deck.read_text(encoding="utf-8"))))
    for name in (deck.name, *_COMMON, *pictures):
        path = deck.parent / name
        if not path.is_file():
            raise BuildError(f"slides/{deck.name} needs slides/{name}, which is not there")
        total.update(f"{name}\n".encode() + path.read_bytes())
    return total.hexdigest()[:16]


def _built(deck: Path, kind: str) -> Path:
    return deck.parent / "built" / f"{deck.stem}.{kind}"


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _marp(root: Path, report: Callable[[str], object]) -> Path:
    """Marp's program, which is installed if need be.

    With the decks' letters it comes from the locked list, and again when that changes.
    """
    folder = root / "slides"
    program = folder / "node_modules" / ".bin" / "marp"
    wanted, installed = folder / "package-lock.json", folder / "node_modules" / ".package-lock.json"
    if program.exists() and not (
        installed.exists() and installed.stat().st_mtime < wanted.stat().st_mtime
    ):
        return program
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise BuildError(
            "slides are made by Marp, which needs Node.js 18 or later with npm, and one of them is "
            "missing.\nDebian and Ubuntu: apt-get install nodejs npm; macOS: brew install node; "
            "then run this again.\nThe built decks are in slides/built/, so nothing else needs it."
        )
    report("installing Marp into slides/node_modules")
    done = subprocess.run(
        [npm, "ci", "--no-audit", "--no-fund"],
        cwd=folder,
        capture_output=True,
        text=True,
        env=_no_downloads(),
    )
    if done.returncode:
        raise BuildError(f"npm ci in slides/ failed:\n{done.stderr.strip()[-2000:]}")
    return program


def _no_downloads() -> dict[str, str]:
    return {**os.environ, "PUPPETEER_SKIP_DOWNLOAD": "1"}


def find_browser() -> str:
    """The Chromium that prints the PDF."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    browser = os.environ.get("CHROME_PATH") or next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        raise BuildError(
            "the PDF is printed by Chromium, which is missing: apt-get install chromium, or set "
            "CHROME_PATH"
        )
    return browser


def _convert(deck: Path, marp: Path, browser: str) -> tuple[bytes, bytes]:
    """The bytes of the HTML, its pictures and letters inside it, and of the PDF.

    Marp makes both from one folder.
    """
    with tempfile.TemporaryDirectory(prefix="mh-") as name:
        folder = Path(name)
        for linked in {
            Path(link).parts[0] for link in _IN_MARKDOWN.findall(deck.read_text(encoding="utf-8"))
        }:
            (folder / linked).symlink_to((deck.parent / linked).resolve())
        text = with_drawings(deck.read_text(encoding="utf-8"), deck.parent)
        (folder / deck.name).write_text(text, encoding="utf-8")
        theme = (deck.parent / "theme.css").read_text(encoding="utf-8")
        (folder / "theme.css").write_text(inlined(theme, deck.parent), encoding="utf-8")
        shutil.copy(deck.parent / "marp.config.mjs", folder)
        page, paper = folder / "deck.html", folder / "deck.pdf"
        for target in (page, paper):
            _run(marp, browser, folder / deck.name, target)
        text = inlined(page.read_text(encoding="utf-8"), deck.parent)
        fetched = _FROM_THE_NETWORK.search(text)
        if fetched:
            raise BuildError(
                f"slides/{deck.name} loads something from the network: {fetched.group()[:120]}"
            )
        return text.encode(), paper.read_bytes()


def _run(marp: Path, browser: str, deck: Path, target: Path) -> None:
    command = [
        str(marp),
        "--no-stdin",
        "--config-file",
        "marp.config.mjs",
        deck.name,
        "-o",
        str(target),
    ]
    sandbox = {"CHROME_NO_SANDBOX": "1"} if hasattr(os, "geteuid") and os.geteuid() == 0 else {}
    try:
        done = subprocess.run(
            command
            + (
                ["--pdf", "--pdf-outlines", "--pdf-outlines.pages=false"]
                if target.suffix == ".pdf"
                else []
            ),
            cwd=deck.parent,
            capture_output=True,
            text=True,
            timeout=MARP_LIMIT_S,
            env={**_no_downloads(), "CHROME_PATH": browser, **sandbox},
        )
    except subprocess.TimeoutExpired:
        raise BuildError(
            f"Marp has not made {target.suffix[1:]} from slides/{deck.name} within {MARP_LIMIT_S} "
            "s: is this machine busy with other work?"
        ) from None
    if done.returncode or not target.exists():
        raise BuildError(
            f"Marp cannot make {target.suffix[1:]} from "
            f"slides/{deck.name}:\n{done.stderr.strip()[-2000:]}"
        )


def with_drawings(text: str, folder: Path) -> str:
    """The deck with each SVG that has a line to itself drawn into the slide.

    It is in the deck's own letters, and in steps where parts of it carry `data-marpit-fragment`.
    The words in `![...]` are for those who cannot see it.
    """

    def drawing(match: re.Match[str]) -> str:
        words, path = match.group(1), folder / match.group(2)
        if not path.is_file():
            raise BuildError(f"a slide shows slides/{match.group(2)}, which is not there")
        svg = _NOT_FOR_A_PAGE.sub("", path.read_text(encoding="utf-8"))
        # else a browser shows it under the mouse
        svg = re.sub(r"<title>.*?</title>", "", svg, count=1, flags=re.S)
        for before in (r'\bid="', r'href="#', r"url\(#"):  # two drawings may use one name
            svg = re.sub(before, lambda match: f"{match.group()}{path.stem}-", svg)
        head, rest = svg[svg.index("<svg") :].split(">", 1)
        head = re.sub(r'\s(?:width|height|role|aria-label)="[^"]*"', "", head)
        lines = f'{head} role="img" aria-label="{html.escape(words)}">{rest}'.splitlines()
        return "\n".join(['<div class="picture">', *filter(str.strip, lines), "</div>"])

    return _DRAWING.sub(drawing, text)


def inlined(page: str, folder: Path) -> str:
    """The page with every local picture inside it."""

    def data_address(match: re.Match[str]) -> str:
        path = folder / html.unescape(match.group(2))
        if not path.is_file():
            raise BuildError(f"a slide shows slides/{match.group(2)}, which is not there")
        data = base64.b64encode(path.read_bytes()).decode()
        return f"{match.group(1)}data:{_MIME[path.suffix]};base64,{data}"

    return _PICTURE.sub(data_address, page)

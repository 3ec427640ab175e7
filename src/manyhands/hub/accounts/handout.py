"""What is given to people: a CSV, and a PDF with one slip for each account, to be cut apart."""

from __future__ import annotations

import csv
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.machine import local_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import IO, Any

    from fpdf import FPDF

    from manyhands.hub.accounts.table import Account


COLUMNS = ("name", "full_name", "role", "password", "expires", "address")
PAGE_MM, MARGIN_MM, ACROSS, DOWN = (210, 297), 10, 2, 4
FACTS = (
    ("Address / アドレス", "address"),
    ("Name / 名前", "name"),
    ("Password / パスワード", "password"),
    ("Until / 期限", "expires"),
)
STEPS = (
    "1. Open the address in a browser, and log in with the name and the password.",
    "2. The page Start_Here opens. Begin with unit 00.",
    (
        "3. When the account ends, your server stops. Before that, download from work/ what you "
        "want to keep."
    ),
    "1. ブラウザーで上のアドレスを開き、名前とパスワードでログインします。",
    "2. Start_Here のページが開きます。ユニット 00 から始めてください。",
    "3. 期限になるとサーバーは止まります。残したいものは work/ からダウンロードしてください。",
)


def rows(made: Iterable[tuple[Account, str]], address: str) -> list[dict[str, str]]:
    """The rows of both papers, from what `Accounts.create` or `reset` returned."""
    return [
        {
            "name": account.name,
            "full_name": account.full_name,
            "role": account.role,
            "password": password,
            "expires": local_time(account.expires),
            "address": address,
        }
        for account, password in made
    ]


def new_folder(folder: str | Path) -> Path:
    """Make the folder for the papers, readable by its owner alone; returns it.

    Raises FileExistsError where there is one already, for passwords are never overwritten.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, mode=0o700)
    return folder


def write(folder: Path, made: Sequence[tuple[Account, str]], address: str) -> tuple[Path, Path]:
    """Write `accounts.csv` and `accounts.pdf`, readable by their owner alone.

    Returns their paths.
    """
    table, paper = folder / "accounts.csv", folder / "accounts.pdf"
    # the mark lets spreadsheets read Japanese
    with _private(table, "w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(_harmless(row) for row in rows(made, address))
    with _private(paper, "wb") as file:
        file.write(pdf(rows(made, address)))
    return table, paper


def _private(path: Path, how: str, **options: Any) -> IO[Any]:
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), how, **options)


def _harmless(row: dict[str, str]) -> dict[str, str]:
    """A spreadsheet runs what begins with these signs: put an apostrophe before it."""
    return {
        name: "'" + value if value[:1] in ("=", "+", "-", "@") else value
        for name, value in row.items()
    }


def pdf(slips: Iterable[dict[str, str]]) -> bytes:
    """The bytes of an A4 document with eight slips a page.

    The font that shows Japanese is inside it.
    """
    from fpdf import FPDF

    paper = FPDF(format="A4")
    paper.set_auto_page_break(False)
    paper.add_font("text", fname=_inside("matplotlib_fontja", "fonts/ipaexg.ttf"))
    paper.add_font("typed", fname=_inside("matplotlib", "mpl-data/fonts/ttf/DejaVuSansMono.ttf"))
    width, height = (PAGE_MM[0] - 2 * MARGIN_MM) / ACROSS, (PAGE_MM[1] - 2 * MARGIN_MM) / DOWN
    for number, slip in enumerate(slips):
        place = number % (ACROSS * DOWN)
        if place == 0:
            paper.add_page()
        _slip(
            paper,
            slip,
            MARGIN_MM + place % ACROSS * width,
            MARGIN_MM + place // ACROSS * height,
            width,
            height,
        )
    return bytes(paper.output())


def _slip(
    paper: FPDF, slip: dict[str, str], left: float, top: float, width: float, height: float
) -> None:
    paper.set_dash_pattern(dash=1, gap=1.5)
    paper.set_draw_color(150)
    paper.rect(left, top, width, height)
    paper.set_dash_pattern()
    inner, line = width - 10, top + 4
    line = (
        _text(
            paper,
            "text",
            11,
            left + 5,
            line,
            inner,
            "manyhands" + (f": {slip['full_name']}" if slip["full_name"] else ""),
        )
        + 1
    )
    for label, key in FACTS:
        _text(paper, "text", 7, left + 5, line + 0.6, 30, label)
        line = _text(
            paper,
            "typed",
            8 if key in ("address", "expires") else 10,
            left + 35,
            line,
            inner - 30,
            slip[key],
        )
    line += 1
    for step in STEPS:
        line = _text(paper, "text", 7, left + 5, line, inner, step)


def _text(
    paper: FPDF, font: str, size: float, left: float, top: float, width: float, text: str
) -> float:
    """Write a text, broken into lines of `width`; returns where the next one begins."""
    paper.set_font(font, size=size)
    paper.set_xy(left, top)
    anywhere = font == "typed" or not text.isascii()  # Japanese has no spaces to break at
    paper.multi_cell(
        width,
        size * 0.47,
        text,
        align="L",
        new_x="LEFT",
        new_y="NEXT",
        # a name will do
        wrapmode="CHAR" if anywhere else "WORD",  # type: ignore[arg-type]
    )
    return paper.get_y()


def _inside(package: str, name: str) -> Path:
    """The path of a file of an installed package, without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    return Path(spec.origin).parent / name

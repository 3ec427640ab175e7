"""`manyhands site`: the course as pages."""

import re
import shutil
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from manyhands.authoring import BuildError, UnknownNameError
from manyhands.command_line import completed, parser, printable
from manyhands.learner import outcomes
from manyhands.units import NotACloneError, find_root

MARK = ".manyhands-site"  # in a folder that this command has made, and may replace


def main(argv: list[str]) -> int:
    """Run `manyhands site`: build the site; returns the exit status."""
    made = parser(
        "site",
        "Build the course as a web site that needs no network and no server: tutorials, labs, "
        "decks, manuals, glossary and cheat sheet.",
        ["", "--output /srv/www/course"],
    )
    made.add_argument(
        "--output", metavar="FOLDER", help="where to write it (build/site of the clone)"
    )
    made.add_argument(
        "--address",
        metavar="URL",
        default="",
        help="where it will be served, for the picture that is shown with a link to it",
    )
    options = completed(made).parse_args(argv)
    try:
        root = find_root()
        build(root, Path(options.output or root / "build" / "site").resolve(), options.address)
    except (BuildError, NotACloneError) as error:
        print(f"\n{printable(error)}", file=sys.stderr)
        return 2 if isinstance(error, UnknownNameError) else 1
    return 0


def build(root: Path, folder: Path, address: str = "") -> None:
    """Write the site of the clone at `root` into `folder`.

    The folder is replaced when all has worked, and not before; `address` is where it will be
    served, if that is known.
    """
    begun = time.monotonic()
    if address and not re.fullmatch(r"https?://[^\s/]+\S*", address):
        raise UnknownNameError(
            f"--address {address}: give the whole address, for example https://example.org/course"
        )
    if (
        folder.exists()
        and not (folder / MARK).is_file()
        and (not folder.is_dir() or any(folder.iterdir()))
    ):
        raise UnknownNameError(
            f"{folder} exists, but is not a site of this course, so nothing was written.\nName "
            "another folder, or move that one away."
        )
    print("reading notebooks, labs, decks and manuals ...", flush=True)
    with tempfile.TemporaryDirectory(prefix="mh-site-") as scratch:
        made = _pages(root, Path(scratch), address)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(made, folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(
        f"{len(list(folder.rglob('*.html')))} pages, {size / 1e6:.0f} MB, "
        f"{time.monotonic() - begun:.0f} s: open {folder / 'index.html'}"
    )


def _pages(root: Path, scratch: Path, address: str) -> Path:
    """The finished site in a folder of `place`."""
    if not find_spec("myst_nb"):
        raise BuildError(
            "The packages that make the pages are missing. `make site` installs them, or:\n"
            'pip install --constraint constraints.txt --editable ".[site]"'
        )
    from manyhands.website import broken, heads, printed, sphinx_run
    from manyhands.website.lay_out import lay_out

    source, made = scratch / "source", scratch / "site"
    source.mkdir()
    notebooks = lay_out(root, source)
    try:
        outcomes.read(root)
    except ValueError as error:
        raise BuildError(
            f"The site was not built:\n  {error}\nTake the file from git, or delete it and run "
            "`manyhands build`."
        ) from None
    problems = [
        problem for path in notebooks for problem in broken.problems(path, path.relative_to(source))
    ]
    if problems:
        raise BuildError(
            "The site was not built:\n  "
            + "\n  ".join(problems)
            + "\nRepair the source, then run `make build NB=<unit>`."
        )
    print(f"making pages of {len(notebooks)} notebooks and the texts ...", flush=True)
    sphinx_run.run(root, source, made, address)
    heads.tidy(made)
    printed.print_pdf(made / "docs" / "CHEAT_SHEET.html", made / "docs" / "CHEAT_SHEET.pdf")
    (made / ".nojekyll").touch()  # or GitHub Pages leaves out _static
    (made / MARK).write_text(
        "made by `manyhands site`, which may replace this folder\n", encoding="utf-8"
    )
    return made

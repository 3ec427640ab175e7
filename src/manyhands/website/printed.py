"""A page of the site as a PDF, printed by Chromium."""

import os
import subprocess
import tempfile
from pathlib import Path

from manyhands.authoring import BuildError
from manyhands.authoring.slides import find_browser


def print_pdf(page: str | Path, paper: str | Path) -> None:
    """Print the file `page` to the file `paper`; the page's own style says how large it is."""
    with tempfile.TemporaryDirectory(prefix="mh-", ignore_cleanup_errors=True) as profile:
        sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        command = [
            find_browser(),
            "--headless",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            *sandbox,
            f"--user-data-dir={profile}",
            "--no-pdf-header-footer",
            f"--print-to-pdf={paper}",
            Path(page).resolve().as_uri(),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode or not Path(paper).is_file():
        raise BuildError(f"Chromium cannot print {Path(page).name}:\n{done.stderr.strip()[-2000:]}")

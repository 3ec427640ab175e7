"""Where the course's repository is on the web.

`Repository` under `[project.urls]` in pyproject.toml says it, and nothing else does: badges, links
and the messages of an installed wheel are made from it.

Until the course has a public address, that is the placeholder https://github.com/OWNER/manyhands.
"""

import re
from importlib import metadata
from pathlib import Path
from urllib.parse import quote

from manyhands import toml

GITHUB = re.compile(r"https://github\.com/([\w.-]+)/([\w.-]+)")
BRANCH, PLACEHOLDER = "main", "OWNER"


def address(root: str | Path | None = None) -> str:
    """Return the repository's address, without a slash or `.git` at its end.

    It is that of the clone at `root`, or of the installed package; "" if neither has one.
    """
    if root is None:
        return _plain(_installed())
    try:
        project = toml.loads((Path(root) / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return _plain(project["urls"]["Repository"])
    except (OSError, ValueError, KeyError, TypeError):
        # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        return ""


def _plain(text: object) -> str:
    return str(text).strip().rstrip("/").removesuffix(".git")


def _installed() -> str:
    try:
        urls = metadata.metadata("manyhands").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return ""
    return next(
        (url.partition(",")[2] for url in urls if url.partition(",")[0] == "Repository"), ""
    )


def is_known(repository: str) -> bool:
    """Whether an address leads somewhere, and is not the placeholder."""
    return bool(repository) and f"/{PLACEHOLDER}/" not in repository


def file_page(repository: str, path: str, anchor: str = "") -> str:
    """The address of a file's page. On GitHub and GitLab it has this form."""
    return f"{repository}/blob/{BRANCH}/{quote(path)}{anchor and '#' + anchor}"


def opens_in_colab(repository: str, path: str) -> str | None:
    """Return the address that opens a notebook in Colab.

    None if the repository is not on GitHub.
    """
    match = GITHUB.fullmatch(repository)
    if not match:
        return None
    where = f"github/{match[1]}/{match[2]}/blob/{BRANCH}/{quote(path)}"
    return f"https://colab.research.google.com/{where}"


def opens_in_kaggle(repository: str, path: str) -> str | None:
    """Return the address that opens a notebook in Kaggle.

    None if the repository is not on GitHub.
    """
    match = GITHUB.fullmatch(repository)
    return (
        f"https://kaggle.com/kernels/welcome?src={file_page(repository, path)}" if match else None
    )

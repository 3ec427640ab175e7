"""Text of notebooks and names of files as they go into the Markdown of Start_Here."""

import re


def plain(text: str) -> str:
    """Markdown that shows the characters of a text as they are, without its backticks."""
    return re.sub(r"([\\*{}\[\]<>#|&~$]|(?<![^\W_])_|_(?![^\W_]))", r"\\\1", text.replace("`", ""))


def code(line: str) -> str:
    """A line of code, which may contain backticks."""
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    return f"{fence} {line} {fence}"


def link(label: str, path: str) -> str:
    """A link to a path as seen from `work/`, where the page is."""
    return f"[{label}]({path})"

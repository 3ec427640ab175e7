"""Links of a text of the clone, as the site has them."""

import os
import re
from pathlib import Path, PurePosixPath

from manyhands.units import units

# [words](address), no picture
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
_PICTURE = re.compile(r"""!\[[^\]]*\]\(([^()\s]+)\)|<img\b[^>]*\bsrc=["']([^"']+)["'][^>]*>""")
_DEFINED = re.compile(r"^\[([^\]]+)\]: +(\S+)$", re.MULTILINE)  # [label]: address
_CODE = re.compile(r"^ *(```+|~~~+).*?^ *\1 *$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
PAGES = (".md", ".ipynb")


class Links:
    """The links of one text.

    `page` is its path in the clone at `root`; `asked` are the files that they lead to.

    The first page takes the place of Start_Here, which only a learner's copy has; a lab's folder is
    its notebook; a unit that is not there yet is the first page's list of units; a deck is opened
    as it is. A file that is no page is offered for download. A folder that the site does not have,
    a maintainer's, loses its link and keeps its words. Pictures of other hosts, badges, are left
    out: no page of the site asks another host for anything.
    """

    def __init__(self, page: str, root: str | Path) -> None:
        self.folder, self.root = PurePosixPath(page).parent, Path(root)
        self.asked: set[str] = set()
        self.planned = {unit.name for unit in units(root) if unit.planned}

    def mended(self, text: str) -> str:
        """`text` with the links of the site; code stays as it is."""
        code: list[str] = []

        def put_away(match: re.Match[str]) -> str:
            code.append(match.group())
            return f"\0{len(code) - 1}\0"

        text = _CODE.sub(put_away, text)
        text = _PICTURE.sub(self._picture, text)
        text = _DEFINED.sub(self._definition, _LINK.sub(self._link, text))
        return re.sub("\0(\\d+)\0", lambda match: code[int(match.group(1))], text)

    def _picture(self, match: re.Match[str]) -> str:
        address = match[1] or match[2]
        if re.match(r"[a-z]+:|//", address):
            return "" if not address.startswith(("data:", "attachment:")) else match.group()
        self.asked.add(os.path.normpath(self.folder / address))
        return match.group()

    def _link(self, match: re.Match[str]) -> str:
        label, address = match.groups()
        if not label:  # of a badge
            return ""
        there = self._place(address)
        if there is None:
            return label
        if "slides/built/" in there:
            return f'<a href="{there}">{label}</a>'
        return f"[{label}]({there})"

    def _definition(self, match: re.Match[str]) -> str:
        label, address = match.groups()
        there = self._place(address)
        return "" if there is None else f"[{label}]: {there}"

    def _place(self, address: str) -> str | None:
        """Return the address in the site of what `address` leads to.

        None where the site does not have it.
        """
        target, mark, anchor = address.partition("#")
        if not target or re.match(r"[a-z]+:", address):
            return address
        path = PurePosixPath(os.path.normpath(self.folder / target))
        if path.stem in self.planned:
            return self._from_here("index.md") + "#units"
        if path.name == "Start_Here.md":
            return self._from_here("index.md") + mark + anchor
        if path.parts[:2] != ("slides", "built"):
            if (self.root / path).is_dir():
                if path.parts[0] != "labs":
                    return None
                path = path / f"{path.name}.ipynb"
            self.asked.add(str(path))
        return self._from_here(path) + mark + anchor

    def _from_here(self, path: str | PurePosixPath) -> str:
        return os.path.relpath(path, self.folder)

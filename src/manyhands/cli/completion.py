"""`manyhands completion bash`: the lines that make a shell complete commands, options and units.

They come from argcomplete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyhands.command_line import completed, parser

if TYPE_CHECKING:
    from collections.abc import Sequence


DESCRIPTION = (
    "Print what makes your shell complete `manyhands` when you press Tab. "
    "The program must be on the shell's path: type\n`source .venv/bin/activate` first."
)


def main(argv: Sequence[str]) -> int:
    """Run `manyhands completion`: print what a shell's completion needs; returns 0."""
    made = parser(
        "completion",
        DESCRIPTION,
        [
            "bash > ~/.local/share/bash-completion/completions/manyhands",
            "zsh  > ~/.zfunc/_manyhands",
            "fish > ~/.config/fish/completions/manyhands.fish",
        ],
    )
    made.add_argument("shell", choices=["bash", "zsh", "fish"])
    shell = completed(made).parse_args(argv).shell
    import argcomplete

    print(argcomplete.shellcode(["manyhands"], shell=shell), end="")
    return 0

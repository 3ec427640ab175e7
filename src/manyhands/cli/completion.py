"""`manyhands completion bash`: the lines that make a shell complete commands, options and units.

They come from argcomplete.
"""

from manyhands.command_line import completed, parser

DESCRIPTION = (
    "Print what makes your shell complete `manyhands` when you press Tab. "
    "The program must be on the shell's path: type\n`source .venv/bin/activate` first."
)


def main(argv):
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

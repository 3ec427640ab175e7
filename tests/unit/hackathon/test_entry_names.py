"""Names of folders and files that a terminal would obey, or that are not UTF-8.

They lead to a sentence, before any judging.
"""

import os

import pytest
from small_event import event

from manyhands.hackathon import hack_command
from manyhands.shared import signing

NAMES = {
    "not UTF-8": b"ours\xff",
    "an escape code": b"\x1b]0;owned\x07",
    "a colour": b"\x1b[31mred",
    "another direction": "our\u202eyrtne".encode(),
    "a line break": b"a\nb",
    "zero width": "ou\u200brs".encode(),
    "too long": b"x" * 120,
}


class Begun:
    """What must not be made."""

    def __init__(self, *_):
        pytest.fail("the judging has begun")


@pytest.fixture
def hack(tmp_path, monkeypatch, capsys):
    """Type a command in a separate folder.

    Gives (exit code, all that was printed), which a terminal can show as it is.
    """
    monkeypatch.chdir(tmp_path)
    signing.new_key("judge.key")
    for name in ("Sandboxes", "why_none"):
        monkeypatch.setattr(f"manyhands.hackathon.judge.sandboxes.{name}", Begun)

    def typed(*command):
        code = hack_command.main([os.fsdecode(word) for word in command])
        output = capsys.readouterr()
        assert (output.out + output.err).encode() and all(
            letter.isprintable() or letter == "\n" for letter in output.out + output.err
        )
        return code, output.out + output.err

    return typed


def entry(folder):
    folder = os.fsencode(folder)
    os.makedirs(folder)
    for name, text in (
        (b"entry.py", b"def train(model, batches, comm):\n    pass\n"),
        (b"challenge.txt", b"slow_links\n"),
    ):
        with open(folder + b"/" + name, "wb") as file:
            file.write(text)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", ["init", "try", "judge", "judge into a file", "submit"])
def test_an_entry_whose_name_cannot_be_printed_is_refused_with_a_sentence(
    hack, tmp_path, name, command
):
    folder = NAMES[name]
    if command != "init":
        entry(folder)
    (tmp_path / "autumn").mkdir()
    event(tmp_path / "autumn")
    more = {
        "init": (),
        "try": (),
        "judge": ("--key", "judge.key"),
        "judge into a file": ("--key", "judge.key", "-o", "out.record"),
        "submit": ("--event", "autumn", "--team", "team 0"),
    }[command]
    challenge = ("slow_links",) if command == "init" else ()
    code, printed = hack(command.split()[0], *challenge, folder, *more)
    assert (
        code == 2
        and "the name of an entry's folder has 1 to 100 characters that can be printed" in printed
    )
    assert (
        os.path.exists(folder) == (command != "init")
        and not list(tmp_path.glob("*.record"))
        and not (tmp_path / "autumn" / "event.jsonl").exists()
    )


@pytest.mark.parametrize("name", [name for name in NAMES if name != "too long"])
def test_every_other_path_is_printed_so_that_a_terminal_can_show_it(hack, tmp_path, name):
    """Of a parent folder, a record, a key, an output, an event."""
    odd = NAMES[name]
    os.makedirs(odd)
    for command in (
        ("init", "slow_links", odd + b"/ours"),
        ("try", odd + b"/nowhere"),
        ("verify", odd + b"/x.record"),
        ("verify", odd),
        ("board", odd),
        ("board", odd, "-o", odd + b"/out"),
        ("board", b"no" + odd),
        ("event", odd + b"/e"),
        ("event", odd + b"/e"),
        ("status", "--event", odd, "--team", "A"),
        ("status", "--event", odd + b"/e", "--team", odd),
        ("judge", odd + b"/ours", "--key", odd),
        ("judge", odd + b"/ours", "--key", odd + b"k"),
        ("judge", odd + b"/ours", "--key", "judge.key", "--seeds-of", odd),
        ("judge", odd + b"/ours", "--key", "judge.key", "-o", odd + b"/no/x"),
        ("judge", odd + b"/ours", "--key", "judge.key", "-o", odd),
        ("run", odd, "--key", "judge.key"),
        ("verify", "judge.key", "--public", odd),
        ("submit", odd + b"/no", "--event", odd, "--team", odd),
    ):
        code, printed = hack(*command)
        assert printed and code in ((0, 2) if command[0] in ("init", "board", "event") else (2,)), (
            command,
            printed,
        )


@pytest.mark.parametrize(
    "output", ["nowhere/x.record", "judge.key/x.record", "judge.key", "x" * 300, "dangling"]
)
def test_a_record_that_could_not_be_written_is_refused_before_the_judging(hack, tmp_path, output):
    hack("init", "slow_links", "ours")
    os.symlink("nowhere", tmp_path / "dangling")
    code, printed = hack("judge", "ours", "--key", "judge.key", "-o", output)
    assert code == 2 and output[:50] in printed and "Errno" not in printed

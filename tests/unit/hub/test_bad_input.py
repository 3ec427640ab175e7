"""`manyhands accounts` and `manyhands hub`, given what they cannot use.

They say a sentence and end with exit code 2, and nothing is made or lost.
"""

import os
import socket

import pytest

from manyhands.hub import hub_command
from manyhands.hub.accounts import accounts_command, handout
from manyhands.hub.accounts.table import Accounts

NINES = "9" * 5000
TIMES = [
    "99999999w",
    NINES + "w",
    "-1d",
    "²d",
    "soon",
    "",
    "0001-01-01",
    "9999-12-31",
    "2026-13-01",
    "1e9d",
]
TABLES = {
    "pipe": None,
    "socket": None,
    "folder": None,
    "missing": None,
    "device": None,
    "not text": b"name\n\xff\xfe\n",
    "huge cell": b"name\n" + b"a" * 200_000,
    "no column": b"who\nx\n",
    "empty": b"",
    "nobody": b"name\n",
    "twice": b"name\na\na\n",
    "no name": b"name,role\n,king\n",
    "bad end": b"name,expires\na,99999999w\n",
    "escapes": b"name,full_name\na,\x1b[31mred\n",
    "long name": b"name,full_name\na," + b"x" * 101,
    "NUL": b"name\na\0b\n",
}


@pytest.fixture
def accounts(tmp_path, monkeypatch):
    monkeypatch.setattr(accounts_command, "is_classroom", lambda: True)
    monkeypatch.chdir(tmp_path)
    return Accounts(tmp_path / "hub")


def refused(capsys, command, *words):
    """Run it; it must be refused with a sentence."""
    try:
        code = command(list(map(str, words)))
    except SystemExit as end:  # of argparse
        code = end.code
    printed = capsys.readouterr().err
    assert code == 2 and printed.strip() and "Traceback" not in printed and "\x1b" not in printed, (
        words,
        code,
        printed[:500],
    )
    return printed


@pytest.mark.parametrize("when", TIMES, ids=lambda when: when[:12])
def test_an_end_that_no_calendar_has_is_refused(accounts, capsys, when):
    for words in (["create", "1"], ["extend", "ann"]):
        printed = refused(
            capsys, accounts_command.main, "--home", accounts.folder, *words, f"--expires={when}"
        )
        assert len(printed) < 500
    assert not accounts.folder.exists()


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_that_is_none_is_refused_and_not_waited_for(accounts, tmp_path, capsys, kind):
    path = tmp_path / "people.csv"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind("people.csv")
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind != "missing":
        path.write_bytes(TABLES[kind])
    refused(
        capsys, accounts_command.main, "--home", accounts.folder, "import", path, "--expires", "1d"
    )
    assert not accounts.load()


@pytest.mark.parametrize(
    "words",
    [["reset"], ["revoke"], ["restore"], ["purge"], ["extend", "--expires", "1d"]],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize(
    "name",
    ["nobody", "", ".", "../x", "\x1b[2Jx", "a" * 5000, "\ud800"],
    ids=lambda name: repr(name)[:10],
)
def test_a_name_that_no_account_has_is_refused(accounts, capsys, words, name):
    refused(capsys, accounts_command.main, "--home", accounts.folder, *words, name)
    assert not accounts.folder.exists()


def test_no_account_and_no_password_without_its_papers(accounts, tmp_path, capsys, monkeypatch):
    def command(*words):
        return accounts_command.main(["--home", str(accounts.folder), *map(str, words)])

    assert command("create", 1, "--expires", "1d") == 0
    (tmp_path / "there").write_text("")
    before = accounts.path.read_bytes()
    for out in ("there", "there/below", "/proc/x"):
        for words in (["create", 1, "--expires", "1d"], ["reset", "hand01"]):
            refused(capsys, accounts_command.main, "--home", accounts.folder, *words, "--out", out)
            assert accounts.path.read_bytes() == before
    refused(
        capsys, accounts_command.main, "--home", accounts.folder, "reset", "nobody", "--out", "new"
    )
    assert not (tmp_path / "new").exists()
    monkeypatch.setattr(
        handout, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    assert command("create", 1, "--expires", "1d", "--out", "full") == 1
    assert "accounts reset hand02" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        '{"accounts": 3, "next_uid": 1}',
        '{"accounts": [{"name": "a"}], "next_uid": 1}',
        '{"accounts": [3]}',
        "[" * 100_000,
        "\0",
    ],
)
def test_a_damaged_table_of_accounts_is_named_and_kept(accounts, capsys, content):
    accounts.folder.mkdir()
    accounts.path.write_text(content)
    for words in (
        ["list"],
        ["create", "1", "--expires", "1d"],
        ["reset", "ann"],
        ["revoke", "ann"],
        ["purge", "--ended"],
    ):
        assert "accounts.json is damaged" in refused(
            capsys, accounts_command.main, "--home", accounts.folder, *words
        )
    assert accounts.path.read_text() == content


@pytest.mark.parametrize(
    "count", ["0", "-1", "²", "1.5", "40000", NINES], ids=lambda count: count[:8]
)
def test_a_count_that_no_hub_can_have_is_refused(accounts, capsys, count):
    refused(
        capsys,
        accounts_command.main,
        "--home",
        accounts.folder,
        "create",
        f" {count}",
        "--expires",
        "1d",
    )
    assert not accounts.folder.exists()


WORDS = [
    *(
        [option, word]
        for option in (
            "--port",
            "--servers-port",
            "--cpus",
            "--memory",
            "--processes",
            "--disk",
            "--tidy-up",
            "--places",
            "--gpus",
            "--idle",
        )
        for word in ("-1", "²", "nan", "", "0x10", "1e999", "1e9999", "99999999", NINES)
    ),
    ["--ip", "999.1.1.1"],
    ["--ip", "not a host"],
    ["--ip", "203.0.113.9"],
    ["--behind", "proxy"],
    ["--behind", ""],
    ["--port", "8123", "--servers-port", "8123"],
    ["--address", "class", "--servers-address", "class"],
    ["--address", "http://a/", "--servers-address", "ftp://b/"],
    ["--certificate", "missing", "--key", "missing"],
    ["--certificate", ".", "--key", "."],
    ["--certificate", "pipe", "--key", "pipe"],
    ["--certificate", "text", "--key", "text"],
    ["--certificate", "\x1b[31mred", "--key", "x"],
    ["--home", "x" * 120],
    ["--home", "日本" * 20],
    ["--home", "x" * 300],
    ["--home", "text"],
    ["--home", "text/x"],
    ["--home", "ring"],
    ["--home", "/proc/x"],
]


@pytest.mark.parametrize(
    "words",
    [words for words in WORDS if words != ["--memory", "99999999"]],
    ids=lambda words: " ".join(words)[:30],
)
def test_an_option_that_no_hub_can_have_is_refused_and_nothing_is_made(
    tmp_path, capsys, monkeypatch, words
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub_command, "_serve", lambda *_: pytest.fail("it would start"))
    os.mkfifo("pipe"), (tmp_path / "text").write_text("x"), os.symlink("ring", "ring")
    refused(capsys, hub_command.main, *([] if "--home" in words else ["--home", "made"]), *words)
    assert sorted(os.listdir()) == ["pipe", "ring", "text"]

"""Trial accounts: the table, the command, the papers, the archive. Without a hub."""

import csv
import json
import multiprocessing
import os
import re
import stat
import subprocess
import tarfile
import time
from datetime import datetime
from types import SimpleNamespace

import pytest

from manyhands.hub import hub_address, hub_command
from manyhands.hub.accounts import account_log, accounts_command, archive, handout, passwords
from manyhands.hub.accounts.account_error import AccountError
from manyhands.hub.accounts.lifetime import until
from manyhands.hub.accounts.table import Accounts
from manyhands.hub.servers import limits


@pytest.fixture
def accounts(tmp_path):
    accounts_command.prepare(tmp_path / "hub")
    return Accounts(tmp_path / "hub")


@pytest.fixture
def people(accounts):
    """Two open accounts: [(Account, password)]."""
    return accounts.create(
        [{"name": "hand01"}, {"name": "taro", "full_name": "山田 太郎"}], time.time() + 60
    )


def run(accounts, *arguments):
    return accounts_command.main(["--home", str(accounts.folder), *map(str, arguments)])


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_password_has_50_bits_or_more_and_forgives_how_it_is_typed():
    assert (len(passwords.CONSONANTS) * len(passwords.VOWELS)) ** (
        passwords.WORDS * passwords.SYLLABLES
    ) > 2**50
    drawn = {passwords.new_password() for _ in range(100)}
    assert len(drawn) == 100 and all(
        re.fullmatch(r"([a-z]{6}-){2}[a-z]{6}", word) for word in drawn
    )
    salt, key = passwords.new_key("bakori-nutefo-samihe")
    assert passwords.matches("Bakori Nutefo Samihe ", salt, key)
    assert passwords.matches("ｂａｋｏｒｉ－ｎｕｔｅｆｏ－ｓａｍｉｈｅ", salt, key)
    assert not passwords.matches("bakori-nutefo-samihi", salt, key)
    assert not passwords.matches("", salt, key)


def test_the_table_is_closed_and_holds_no_password(accounts, people):
    (first, password), (second, _) = people
    text = accounts.path.read_text()
    assert (
        mode(accounts.path) == 0o600
        and password not in text
        and password.replace("-", "") not in text
    )
    assert accounts.get("hand01").accepts(password) and not accounts.get("taro").accepts(password)
    assert first.uid != second.uid and first.salt != second.salt
    assert (
        password not in (accounts.folder / account_log.NAME).read_text()
        and mode(accounts.folder / account_log.NAME) == 0o600
    )


def test_all_or_none_are_made(accounts, people):
    with pytest.raises(AccountError, match="account 'taro' already"):
        accounts.create([{"name": "new"}, {"name": "taro"}], time.time() + 60)
    assert set(accounts.load()) == {"hand01", "taro"}
    for name in ("Root", "../x", "a b", "", "9a", "a" * 32):
        with pytest.raises(AccountError, match="cannot be a name"):
            accounts.create([{"name": name}], time.time() + 60)


def test_names_go_on_after_those_that_are_taken(accounts, people):
    assert accounts.free_names(2, "hand") == ["hand02", "hand03"]
    assert accounts.free_names(100, "x")[::99] == ["x001", "x100"]


def test_a_purged_persons_number_is_never_given_again(accounts, people):
    accounts.revoke(["taro"])
    archive.purge(accounts, "taro")
    [(third, _)] = accounts.create([{"name": "third"}], time.time() + 60)
    assert third.uid > people[1][0].uid


def test_until():
    assert until("90s", now=0) == 90 and until("2w", now=0) == 14 * 86400
    assert until("2999-12-01") == datetime(2999, 12, 1, 23, 59, 59).timestamp()
    with pytest.raises(AccountError, match="has passed"):
        until("2001-01-01T10:00")
    with pytest.raises(AccountError, match="is not a time"):
        until("soon")


def test_states(accounts, people):
    state = lambda: accounts.get("hand01").state  # noqa: E731
    assert state() == "open"
    accounts.extend(["hand01"], time.time() - 1)
    assert state() == "expired"
    accounts.extend(["hand01"], time.time() + 60)
    accounts.revoke(["hand01"])
    assert state() == "revoked"
    [(account, new)] = accounts.reset(["hand01"])
    assert state() == "open" and account.accepts(new) and not account.accepts(people[0][1])
    with pytest.raises(AccountError, match="no account 'nobody'"):
        accounts.revoke(["taro", "nobody"])
    assert accounts.get("taro").state == "open"
    assert [line["action"] for line in account_log.read(accounts.folder)] == [
        "create",
        "create",
        "extend",
        "extend",
        "revoke",
        "reset",
    ]


def _create_one(folder, number):
    Accounts(folder).create([{"name": f"p{number}"}], time.time() + 60)


def test_two_commands_at_once_lose_nothing(accounts):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        pool.starmap(_create_one, [(accounts.folder, number) for number in range(12)])
    table = accounts.load()
    assert len(table) == 12 and len({account.uid for account in table.values()}) == 12
    assert len(account_log.read(accounts.folder)) == 12


def test_a_line_cut_off_by_a_crash_does_not_spoil_the_log(accounts, people):
    with open(accounts.folder / account_log.NAME, "a") as file:
        file.write('{"action": "cut')
    assert len(account_log.read(accounts.folder)) == 2


def test_create_hands_out_what_opens_the_account(accounts, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(accounts_command, "is_classroom", lambda: True)
    (accounts.folder / "address").write_text("http://class.example:8000/hub/\n")
    assert run(accounts, "create", 3, "--expires", "3d", "--out", tmp_path / "papers") == 0
    with open(tmp_path / "papers" / "accounts.csv", encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["hand01", "hand02", "hand03"]
    assert all(
        accounts.get(row["name"]).accepts(row["password"])
        and row["address"] == "http://class.example:8000/hub/"
        for row in rows
    )
    paper = (tmp_path / "papers" / "accounts.pdf").read_bytes()
    assert paper.startswith(b"%PDF-") and b"IPAexGothic" in paper
    assert (
        mode(tmp_path / "papers") == 0o700
        and mode(tmp_path / "papers" / "accounts.pdf")
        == mode(tmp_path / "papers" / "accounts.csv")
        == 0o600
    )
    printed = capsys.readouterr().out
    assert not any(row["password"] in printed for row in rows)
    assert run(accounts, "create", 1, "--expires", "3d", "--out", tmp_path / "papers") == 2, (
        "papers are never overwritten"
    )
    assert len(accounts.load()) == 3, "no account without its papers"


@pytest.mark.parametrize(("root", "start"), [(True, "--ip 0.0.0.0"), (False, "")])
def test_papers_of_a_hub_that_was_never_started_name_the_address_that_it_will_have(
    root, start, accounts, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(accounts_command, "is_classroom", lambda: root)
    assert run(accounts, "create", 1, "--expires", "3d", "--out", tmp_path / "papers") == 0
    printed = capsys.readouterr().out
    assert f"manyhands hub --home {accounts.folder} {start}".strip() in printed
    made = hub_command.parser().parse_args(start.split())
    will_be = (
        f"http://{hub_address.shown(made.ip)}:{hub_address.port_of(accounts.folder, made.port)}/"
    )
    assert (
        f",{will_be}\n" in (tmp_path / "papers" / "accounts.csv").read_text(encoding="utf-8-sig")
        and will_be in printed
    )
    assert run(accounts, "reset", "hand01", "--out", tmp_path / "again") == 0
    assert f",{will_be}\n" in (tmp_path / "again" / "accounts.csv").read_text(encoding="utf-8-sig")
    (accounts.folder / "hub.lock").touch()  # it was started: where it is is known
    capsys.readouterr()
    assert run(accounts, "reset", "hand01", "--out", tmp_path / "later") == 0
    assert "manyhands hub" not in capsys.readouterr().out


def test_what_cannot_be_asked_for_is_wrong_usage(accounts):
    assert run(accounts, "create", 0, "--expires", "1d") == 2
    assert run(accounts, "purge") == 2
    assert run(accounts, "create", 1, "--expires", "soon") == 2 and not accounts.load()


def test_without_root_one_account_and_no_more(accounts, capsys, monkeypatch):
    monkeypatch.setattr(accounts_command, "is_classroom", lambda: False)
    assert run(accounts, "create", 2, "--expires", "1d") == 2
    assert run(accounts, "create", 1, "--expires", "1d") == 0
    assert run(accounts, "create", 1, "--expires", "1d") == 2
    assert len(accounts.load()) == 1 and "Only root" in capsys.readouterr().err


def test_import(accounts, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(accounts_command, "is_classroom", lambda: True)
    table = tmp_path / "people.csv"
    table.write_text(
        "\ufeffName,full_name,Role,expires\nHanako,花子,,\n,,,\nben,Ben,assistant,2w\n",
        encoding="utf-8",
    )
    assert run(accounts, "import", table, "--expires", "1d") == 0
    made = accounts.load()
    assert (
        made["hanako"].full_name == "花子"
        and made["hanako"].role == "attendee"
        and made["ben"].role == "assistant"
    )
    assert made["ben"].expires - made["hanako"].expires == pytest.approx(13 * 86400, abs=60)
    for text, wrong in (
        ("who\nx\n", 'no column "name"'),
        ("name\na\nA\n", "line 3"),
        ("name,role\nnew,king\n", "no role 'king'"),
        ("", "no column"),
    ):
        table.write_text(text)
        assert run(accounts, "import", table, "--expires", "1d") == 2
        assert wrong in capsys.readouterr().err
    assert len(accounts.load()) == 2


def test_a_spreadsheet_runs_no_name(tmp_path):
    person = SimpleNamespace(name="x", full_name="=HYPERLINK(1)", role="attendee", expires=0)
    table, _ = handout.write(
        handout.new_folder(tmp_path / "papers"), [(person, "bakori")], "http://x"
    )
    assert "'=HYPERLINK(1)" in table.read_text(encoding="utf-8-sig")


def test_an_ended_account_is_archived_before_it_is_deleted_and_can_be_restored(accounts, people):
    account, home = people[0][0], accounts.home("hand01")
    archive.make_home(account, home)
    (home / "work").mkdir()
    (home / "work" / "notes.txt").write_text("mine")
    (home / "elsewhere").symlink_to("/etc/passwd")
    if os.geteuid() == 0:
        for path in (home / "work", home / "work" / "notes.txt"):
            os.chown(path, account.uid, account.uid)
    with pytest.raises(AccountError, match="is open until its end"):
        archive.purge(accounts, "hand01")
    assert (home / "work" / "notes.txt").exists()
    accounts.revoke(["hand01"])
    packed = archive.archive(accounts, "hand01")
    assert mode(packed) == 0o600 and accounts.get("hand01").archived
    again = archive.restore(accounts, "hand01")
    assert again != home and (again / "work" / "notes.txt").read_text() == "mine", (
        "beside what is there"
    )
    assert (again / "elsewhere").is_symlink() and (
        again / "work"
    ).stat().st_uid == home.stat().st_uid
    assert archive.purge(accounts, "hand01") == packed and not home.exists()
    assert "hand01" not in accounts.load() and packed.exists()


def closed(home, uid):
    """A folder in the home that its owner has closed to everybody, with a file in it."""
    inner = home / "closed" / "inner"
    inner.mkdir(parents=True)
    (inner / "notes.txt").write_text("mine")
    for path in (inner / "notes.txt", inner, inner.parent):
        if os.geteuid() == 0:
            os.chown(path, uid, uid)
        path.chmod(0)


def nested(home, depth, size_bytes):
    """Folders in folders, with a file in the last."""
    here = os.open(home, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("deep", dir_fd=here)
        above, here = here, os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(above)
    with open(os.open("large", os.O_WRONLY | os.O_CREAT, dir_fd=here), "wb") as file:
        os.posix_fallocate(file.fileno(), 0, size_bytes)
    os.close(here)


def test_a_folder_that_is_closed_to_everybody_is_archived_too(accounts, people):
    account, home = people[0][0], accounts.home("hand01")
    archive.make_home(account, home)
    closed(home, account.uid)
    accounts.revoke(["hand01"])
    packed = archive.purge(accounts, "hand01")
    with tarfile.open(packed) as file:
        assert file.extractfile("./closed/inner/notes.txt").read() == b"mine"
    assert not home.exists() and "hand01" not in accounts.load()


def test_a_home_of_nested_folders_is_counted_archived_and_deleted(accounts, people):
    home = accounts.home("hand01")
    archive.make_home(people[0][0], home)
    nested(home, depth=1100, size_bytes=2**26)
    (home / "notes.txt").write_text("mine")
    accounts.revoke(["hand01"])
    try:
        assert limits.disk_used(home) > 2**26, "below a path of 5,500 bytes, too"
        packed = archive.purge(accounts, "hand01")
    finally:
        subprocess.run(["rm", "-rf", home], check=True)
    with tarfile.open(packed) as file:
        names = file.getnames()
    assert (
        "./notes.txt" in names
        and max(map(len, names)) <= archive.LONGEST_BYTES
        and not any(name.endswith("large") for name in names)
    )
    assert account_log.read(accounts.folder)[-2]["left_out"] == archive.LEFT_OUT


def test_an_account_that_is_opened_while_it_is_archived_will_be_archived_again(
    accounts, people, tmp_path
):
    accounts.note_archived("hand01", tmp_path)
    assert not accounts.get("hand01").archived
    accounts.revoke(["hand01"])
    accounts.note_archived("hand01", tmp_path)
    assert accounts.get("hand01").archived


def test_one_home_does_not_keep_others_from_being_deleted(accounts, people, capsys, monkeypatch):
    for account, _ in people:
        archive.make_home(account, accounts.home(account.name))
    accounts.revoke(["hand01", "taro"])
    whole = archive.archive
    monkeypatch.setattr(
        archive, "archive", lambda table, name: whole(table, name) if name == "taro" else wrong()
    )
    assert run(accounts, "purge", "--ended") == 1
    assert set(accounts.load()) == {"hand01"} and "no space" in capsys.readouterr().err


def wrong():
    raise AccountError("no space")


def test_what_cannot_be_archived_is_not_deleted(accounts, people):
    home = accounts.home("hand01")
    archive.make_home(people[0][0], home)
    accounts.revoke(["hand01"])
    (home / "closed").mkdir(mode=0)
    if os.geteuid() == 0:
        os.chmod(home / "closed", 0o700)  # root's own: the person's process cannot read it
    with pytest.raises(AccountError, match="nothing was deleted"):
        archive.purge(accounts, "hand01")
    assert (
        home.exists()
        and "hand01" in accounts.load()
        and not list((accounts.folder / "archive").iterdir())
    )


def test_the_log_tells_every_action(accounts, people):
    lines = [
        json.loads(line) for line in (accounts.folder / account_log.NAME).read_text().splitlines()
    ]
    assert [(line["action"], line["account"]) for line in lines] == [
        ("create", "hand01"),
        ("create", "taro"),
    ]
    assert all(line["when"] and line["by"] for line in lines)

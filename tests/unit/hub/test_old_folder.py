"""A hub's folder of an earlier version, whose files had other places, stays a hub's folder.

hub.tar.gz was made on 2026-11-24 with the version of commit 038cfe6: three accounts, the last one
ended and archived. The passwords were drawn for this test.
"""

import json
import os
import tarfile
import time
from pathlib import Path

import pytest

from manyhands.hub.accounts import account_log, accounts_command, archive
from manyhands.hub.accounts.table import Accounts

OLD = Path(__file__).parent / "before_the_folders" / "hub.tar.gz"


@pytest.fixture
def old(tmp_path):
    with tarfile.open(OLD) as packed:
        # with the owners' numbers
        packed.extractall(tmp_path / "hub", filter="fully_trusted" if os.geteuid() == 0 else "data")
    accounts_command.prepare(tmp_path / "hub")
    return Accounts(tmp_path / "hub")


def test_passwords_names_and_log_stay(old, capsys):
    assert old.get("hand01").accepts("petehu-watifo-refike") and old.get("taro").accepts(
        "rawoho-paruwu-zinemi"
    )
    assert old.get("taro").full_name == "山田 太郎" and not old.get("hand01").accepts(
        "rawoho-paruwu-zinemi"
    )
    assert {name: account.state for name, account in old.load().items()} == {
        "hand01": "open",
        "taro": "open",
        "gone": "revoked",
    }
    assert [line["action"] for line in account_log.read(old.folder)][:3] == ["create"] * 3
    assert accounts_command.main(["--home", str(old.folder), "list"]) == 0
    assert "taro" in capsys.readouterr().out


def test_a_number_is_never_given_again(old):
    ((account, _),) = old.create([{"name": "new"}], time.time() + 60)
    assert account.uid == 70003 and json.loads(old.path.read_text())["next_uid"] == 70004


def test_files_stay_and_an_archive_comes_back(old):
    assert (old.home("hand01") / "work" / "06.txt").read_text() == "mine: hand01"
    if os.geteuid() == 0:
        assert (archive.restore(old, "gone") / "work" / "06.txt").read_text() == "mine: gone"
        assert (old.home("gone") / "work" / "06.txt").stat().st_uid == old.get("gone").uid

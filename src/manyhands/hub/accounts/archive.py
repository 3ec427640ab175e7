"""The home folder of an ended account: archived first, deleted only then.

The files are an attendee's: what lies there is read and written by a process with that person's
user number, so that no link can lead it to anything that the person could not reach.
"""

from __future__ import annotations

import os
import subprocess
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from manyhands.hub.accounts import account_log
from manyhands.hub.accounts.account_error import AccountError

if TYPE_CHECKING:
    from typing import Any

    from manyhands.hub.accounts.table import Account, Accounts


LONGEST_BYTES = 4000  # of a path: what is longer no program could unpack
LONGER = "?" * LONGEST_BYTES + "*"  # the pattern of such a path, byte by byte
LEFT_OUT = f"what is below a path of {LONGEST_BYTES} bytes"
NOT_ARCHIVED = """The home of {name} could not be archived, so nothing was deleted: {why}
If there are files of another user in {home}, give them to the person, chown -R {uid}:{uid}, or remove them. Afterwards, archiving continues automatically."""


def archive(accounts: Accounts, name: str) -> Path | None:
    """Pack the home into `archive/NAME-TIME.tar.gz`, mode 600.

    Returns its path, or None where there is no home.

    What the person has closed is opened to them first. Raises AccountError if it cannot be read
    whole; the log says what is too deep to be packed. The caller sees to it that none of the
    person's processes runs.
    """
    account, home = accounts.get(name), accounts.home(name)
    if not home.is_dir():
        return None
    target = (
        accounts.folder / "archive" / f"{name}-{datetime.now(timezone.utc):%Y%m%dT%H%M%S.%f}.tar.gz"
    )
    unfinished = target.with_suffix(".part")
    _run(account, home, "chmod", "--recursive", "u+rX", ".")
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(handle, "wb") as file:
            done = _run(
                account,
                home,
                "tar",
                "--create",
                "--gzip",
                "--sort=name",
                "--anchored",
                f"--exclude={LONGER}",
                ".",
                stdout=file,
            )
            file.flush()
            os.fsync(file.fileno())
        if done.returncode:
            raise AccountError(
                NOT_ARCHIVED.format(name=name, why=_said(done), home=home, uid=account.uid)
            )
        os.rename(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)
    deep = _run(
        account, home, "find", ".", "-path", LONGER, "-print", "-quit", stdout=subprocess.PIPE
    ).stdout
    accounts.note_archived(name, target, **({"left_out": LEFT_OUT} if deep else {}))
    return target


def newest(accounts: Accounts, name: str) -> Path | None:
    """The path of the account's last archive, or None."""
    stamp = len("YYYYmmddTHHMMSS.ffffff.tar.gz")
    archives = [
        path
        for path in (accounts.folder / "archive").glob(f"{name}-*.tar.gz")
        if len(path.name) == len(name) + 1 + stamp
    ]
    return max(archives, default=None)


def restore(accounts: Accounts, name: str) -> Path:
    """Unpack the newest archive into the home, or into a new folder in it.

    The new folder is used where the home has files. Returns the folder.
    """
    account, home, packed = accounts.get(name), accounts.home(name), newest(accounts, name)
    if packed is None:
        raise AccountError(f"There is no archive of {name} in {accounts.folder / 'archive'}.")
    make_home(account, home)
    inside = f"restored-{datetime.now():%Y-%m-%dT%H%M%S}" if any(home.iterdir()) else "."
    if inside != ".":
        subprocess.run(["mkdir", inside], cwd=home, check=True, **_as(account))
    with open(packed, "rb") as file:
        done = _run(
            account,
            home,
            "tar",
            "--extract",
            "--gzip",
            "--keep-old-files",
            f"--directory={inside}",
            stdin=file,
        )
    if done.returncode:
        raise AccountError(
            f"{packed.name} could not be unpacked completely into {home / inside}: {_said(done)}"
        )
    account_log.write(accounts.folder, "restore", name, file=str(packed))
    return (home / inside).resolve()


def purge(accounts: Accounts, name: str) -> Path | None:
    """Delete an ended account and its home; the home is archived first, if that is not done.

    Returns the archive, or None.
    """
    account, home = accounts.get(name), accounts.home(name)
    if account.state == "open":
        raise AccountError(
            f"{name} is open until its end. Run `manyhands accounts revoke {name}` first."
        )
    wait_until_quiet(account)
    changed = home.is_dir() and (not account.archived or newest(accounts, name) is None)
    archive_path = archive(accounts, name) if changed else newest(accounts, name)
    if home.is_dir():
        # shutil.rmtree ends in a RecursionError
        done = subprocess.run(
            ["rm", "--recursive", "--force", "--", str(home)], stderr=subprocess.PIPE
        )
        if done.returncode:
            raise AccountError(f"The home of {name} could not be deleted completely: {_said(done)}")
    accounts.remove(name)
    return archive_path


def wait_until_quiet(account: Account, timeout_s: float = 30) -> None:
    """Wait until no process of the person runs; raises AccountError.

    Without root they cannot be told from our own.
    """
    until = time.monotonic() + timeout_s
    while os.geteuid() == 0 and _processes(account):
        if time.monotonic() > until:
            raise AccountError(
                f"Processes of {account.name} are still running. If the hub is running, it stops "
                "them within seconds, so try again."
            )
        time.sleep(0.2)


def _processes(account: Account) -> list[int]:
    return [
        process.pid
        for process in psutil.process_iter(["uids"])
        if process.info["uids"] and process.info["uids"].real == account.uid
    ]


def make_home(account: Account, home: str | Path) -> None:
    """Make the home folder if it is not there: the person's own, closed to all others."""
    home = Path(home)
    if not home.is_dir():
        home.mkdir(mode=0o700, parents=True)
        if os.geteuid() == 0:
            os.chown(home, account.uid, account.uid)


def _run(
    account: Account, home: Path, *command: str, **streams: Any
) -> subprocess.CompletedProcess[bytes]:
    """A program of the system's in the home, as the person."""
    return subprocess.run(
        command,
        cwd=home,
        stderr=subprocess.PIPE,
        env={"PATH": os.defpath + ":/usr/bin:/bin", "LC_ALL": "C"},
        **streams,
        **_as(account),
    )


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    """The end of what a program has said."""
    return done.stderr.decode(errors="replace").strip()[-500:]


def _as(account: Account) -> dict[str, Any]:
    """Options of subprocess: with the person's user number, if we may."""
    return (
        {"user": account.uid, "group": account.uid, "extra_groups": []} if os.geteuid() == 0 else {}
    )

"""The table of trial accounts: `accounts.json` in the hub's folder.

It is changed in one step under a lock, and closed to other users.
"""

from __future__ import annotations

import fcntl
import json
import pwd
import re
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.hub.accounts import account_log
from manyhands.hub.accounts.account_error import AccountError
from manyhands.hub.accounts.lifetime import until
from manyhands.hub.accounts.passwords import matches, new_key, new_password

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, Literal

    Table = dict[str, "Account"]


ATTENDEE, ASSISTANT, INSTRUCTOR = ROLES = ("attendee", "assistant", "instructor")
NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
# between what distributions give to people and what they give to containers
FIRST_UID, LAST_UID = 70_000, 99_999


@dataclass
class Account:
    """One person's account.

    Times are seconds since 1970; `uid` is the number that the person's processes and files carry.
    """

    name: str
    role: str
    uid: int
    salt: str
    key: str
    since: float  # when it was made or last reset: sessions that began before that are over
    expires: float
    full_name: str = ""
    revoked: bool = False
    # when the home folder was last archived after the account had ended; 0: not since it was last
    # open
    archived: float = 0.0

    @property
    def state(self) -> Literal["open", "expired", "revoked"]:
        """ "open", "expired" or "revoked"."""
        if self.revoked:
            return "revoked"
        return "open" if time.time() < self.expires else "expired"

    def admits(self, session_began: float) -> bool:
        """Whether a session that began then may go on."""
        return self.state == "open" and self.since <= session_began

    def accepts(self, password: str) -> bool:
        """Whether this is the account's password."""
        return matches(password, self.salt, self.key)


class Accounts:
    """The table in the hub's folder. Every change is written to the log."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.path = self.folder / "accounts.json"

    def load(self) -> Table:
        """{name: Account}."""
        return self._read()[0]

    def _read(self) -> tuple[Table, int]:
        """The accounts, and the next number that nobody has had."""
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            return {row["name"]: Account(**row) for row in data["accounts"]}, data["next_uid"]
        except FileNotFoundError:
            return {}, FIRST_UID
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
            raise AccountError(
                f"{self.path} is damaged or from a different version ({type(problem).__name__}: "
                f"{str(problem)[:200]}). Nothing was changed. Restore the file from a copy."
            ) from None

    def get(self, name: str) -> Account:
        """The account of this name; raises AccountError."""
        return _find(self.load(), name)

    def home(self, name: str) -> Path:
        """The account's home folder."""
        return self.folder / "homes" / name

    @contextmanager
    def _changing(self) -> Iterator[Table]:
        """Read, let the caller change, write in one step; a second writer waits meanwhile."""
        from manyhands.shared.atomic import write_file

        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / "accounts.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            table, next_uid = self._read()
            yield table
            next_uid = max([next_uid, *(account.uid + 1 for account in table.values())])
            content = {
                "next_uid": next_uid,
                "accounts": [asdict(account) for account in table.values()],
            }
            write_file(self.path, json.dumps(content, indent=1, ensure_ascii=False))

    def create(
        self, people: Iterable[Mapping[str, Any]], expires: float, role: str = ATTENDEE
    ) -> list[tuple[Account, str]]:
        """Add accounts, all or none.

        `people`: [{"name": ..., "full_name": ..., "role": ..., "expires": ...}], all but the name
        optional. Returns [(Account, password)]: the passwords are nowhere else.
        """
        made = []
        with self._changing() as table:
            for person in people:
                name = person["name"]
                _check_new(name, person.get("role") or role, table)
                password = new_password()
                salt, key = new_key(password)
                account = Account(
                    name,
                    person.get("role") or role,
                    self._new_uid(table),
                    salt,
                    key,
                    time.time(),
                    until(person["expires"]) if person.get("expires") else expires,
                    person.get("full_name") or "",
                )
                table[name] = account
                made.append((account, password))
        for account, _ in made:
            account_log.write(
                self.folder, "create", account.name, role=account.role, expires=account.expires
            )
        return made

    def _new_uid(self, table: Table) -> int:
        """A number that no user of this machine has, and that no account has ever had.

        So the files of a purged account belong to nobody.
        """
        first = max([self._read()[1], *(account.uid + 1 for account in table.values())])
        taken = {entry.pw_uid for entry in pwd.getpwall()}
        for uid in range(first, LAST_UID + 1):
            if uid not in taken:
                return uid
        raise AccountError(
            f"The user numbers up to {LAST_UID} are used up. Start a new hub folder (--home)."
        )

    def free_names(self, count: int, prefix: str) -> list[str]:
        """`prefix01`, `prefix02` ...: the first names after those that are taken."""
        taken = set(self.load())
        numbers = [
            int(name[len(prefix) :])
            for name in taken
            if name.startswith(prefix) and name[len(prefix) :].isdigit()
        ]
        first = max(numbers, default=0) + 1
        digits = max(2, len(str(first + count - 1)))
        return [f"{prefix}{number:0{digits}}" for number in range(first, first + count)]

    def extend(self, names: Sequence[str], expires: float) -> list[Account]:
        """Set a new end; an expired account is open again. A revoked one stays revoked."""
        return self._change(names, "extend", expires=expires, archived=0.0)

    def revoke(self, names: Sequence[str]) -> list[Account]:
        """Close accounts at once and for good, until `reset` opens them again."""
        return self._change(names, "revoke", revoked=True)

    def reset(self, names: Sequence[str]) -> list[tuple[Account, str]]:
        """New passwords; a revoked account is open again until its end.

        Returns [(Account, password)].
        """
        made = []
        with self._changing() as table:
            for account in [_find(table, name) for name in names]:
                password = new_password()
                account.salt, account.key = new_key(password)
                account.revoked, account.archived, account.since = False, 0.0, time.time()
                made.append((account, password))
        for name in names:
            account_log.write(self.folder, "reset", name)
        return made

    def note_archived(self, name: str, path: Path, **facts: object) -> None:
        """Remember that an ended account's home was archived.

        Nothing is done if it was opened again meanwhile. The keeper calls it.
        """
        with self._changing() as table:
            account = _find(table, name)
            account.archived = time.time() if account.state != "open" else 0.0
        account_log.write(self.folder, "archive", name, file=str(path), **facts)

    def remove(self, name: str) -> None:
        """Take an account out of the table; `purge` calls it after the home was archived."""
        with self._changing() as table:
            _find(table, name)
            del table[name]
        account_log.write(self.folder, "purge", name)

    def _change(self, names: Sequence[str], action: str, **fields: Any) -> list[Account]:
        with self._changing() as table:
            changed = [_find(table, name) for name in names]
            for account in changed:
                for field, value in fields.items():
                    setattr(account, field, value)
        for account in changed:
            account_log.write(self.folder, action, account.name, **fields)
        return changed


def _find(table: Table, name: str) -> Account:
    if name not in table:
        raise AccountError(
            f"There is no account {name!r}. `manyhands accounts list` shows all accounts."
        )
    return table[name]


def _check_new(name: str, role: str, table: Table) -> None:
    if not NAME.fullmatch(name):
        raise AccountError(
            f"{name!r} cannot be a name. A name begins with a small letter, followed by at most 30 "
            "small letters, digits and hyphens."
        )
    if name in table:
        raise AccountError(
            f"The account {name!r} already exists. `manyhands accounts reset {name}` gives it a new"
            " password."
        )
    if role not in ROLES:
        raise AccountError(f"{name}: there is no role {role!r}; the roles are {', '.join(ROLES)}.")

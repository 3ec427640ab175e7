"""`manyhands accounts`: make, list and end trial accounts."""

from __future__ import annotations

import csv
import os
import stat
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.command_line import completed, printable
from manyhands.command_line import parser as command_parser
from manyhands.hub import hub_address
from manyhands.hub.accounts import archive, handout
from manyhands.hub.accounts.account_error import AccountError
from manyhands.hub.accounts.lifetime import until
from manyhands.hub.accounts.table import ATTENDEE, FIRST_UID, LAST_UID, ROLES, Accounts
from manyhands.hub.folder import LOCK, address, hub_folder, is_classroom, prepare
from manyhands.machine import local_time
from manyhands.units import NotACloneError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TextIO

    from manyhands.hub.accounts.table import Account


DESCRIPTION = """Trial accounts of the hub on this machine. A running hub follows every change within seconds.
Passwords are stored only as scrypt, and they are written only in the hand-out."""
MOST = LAST_UID - FIRST_UID + 1  # each account has a number that no other has had
LONGEST_NAME = 100  # of a person, in full: so that it fits on a slip
TIME = "12h, 3d, 2w, 2026-12-01 or 2026-12-01T18:00"
NOT_ROOT = (
    "Only root can give each attendee a separate user number and a closed room. Without root, the "
    "hub is a demonstration for one person and accepts only one account, but one exists already, "
    "or you asked for several. Run this as root for a class."
)
TO_START = (
    "The papers name {where} , which is where the hub answers when it is started with\n  manyhands "
    "hub{more}"
)
NO_PAPERS = (
    "The papers could not be written: {why}\nThe accounts exist, but their passwords are lost. Make"
    " new ones:\n  manyhands accounts reset {names}"
)
AT_ANOTHER = (
    "For another address: `manyhands accounts reset NAME... --address ADDRESS` prints new papers."
)


class NotDoneError(AccountError):
    """What was asked for is possible, and could not be done to its end."""


def parser() -> argparse.ArgumentParser:
    """Make the parser of `manyhands accounts` with all its commands."""
    made = command_parser(
        "accounts",
        DESCRIPTION,
        [
            "create 20 --expires 3d",
            "import people.csv --expires 2026-12-01",
            "extend hand07 --expires 1w",
            "list",
        ],
    )
    made.add_argument(
        "--home", metavar="FOLDER", help="the hub's folder (default: .manyhands/hub in the clone)"
    )
    actions = made.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = actions.add_parser("create", help="make accounts, and the papers to hand out")
    create.add_argument("count", type=int, metavar="N")
    create.add_argument(
        "--prefix", default="hand", help="the names are PREFIX01, PREFIX02 ... (default: hand)"
    )
    several = actions.add_parser(
        "import",
        help=(
            "make accounts for registered people, from a CSV with the column name and, "
            "optionally, full_name, role and expires"
        ),
    )
    several.add_argument("table", type=Path, metavar="CSV")
    for command in (create, several):
        command.add_argument("--expires", required=True, metavar="WHEN", help=TIME)
        command.add_argument("--role", choices=ROLES, default=ATTENDEE)
    reset = actions.add_parser(
        "reset", help="make new passwords, which also reopens revoked accounts"
    )
    for command in (create, several, reset):
        command.add_argument(
            "--address", help="the address on the papers (default: where the hub was last started)"
        )
        command.add_argument(
            "--out",
            type=Path,
            metavar="FOLDER",
            help="a new folder for the papers (default: one in the hub's folder)",
        )
    actions.add_parser("list", help="list all accounts")
    extend = actions.add_parser("extend", help="set a new end of accounts")
    extend.add_argument("--expires", required=True, metavar="WHEN", help=TIME)
    revoke = actions.add_parser("revoke", help="end accounts immediately, but keep their files")
    purge = actions.add_parser(
        "purge", help="delete ended accounts and their homes, after these have been archived"
    )
    restore = actions.add_parser(
        "restore",
        help="put the files of the newest archive back into the home, next to what it contains",
    )
    for command in (reset, extend, revoke, purge, restore):
        command.add_argument("names", nargs="*" if command is purge else "+", metavar="NAME")
    purge.add_argument(
        "--ended", action="store_true", help="all accounts that are expired or revoked"
    )
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run `manyhands accounts` with these arguments; returns the exit status."""
    options = completed(parser()).parse_args(argv)
    try:
        folder = hub_folder(options.home)
        accounts = Accounts(folder)
        _understood(accounts, options)
        prepare(folder)
        ACTIONS[options.action](accounts, options)
    except (AccountError, NotACloneError, OSError) as problem:
        print(f"manyhands accounts: {printable(problem)}", file=sys.stderr)
        return 1 if isinstance(problem, NotDoneError) else 2
    return 0


def _understood(accounts: Accounts, options: argparse.Namespace) -> None:
    """Look at what was asked for before anything is made; raises AccountError."""
    if options.action == "create" and not 1 <= options.count <= MOST:
        raise AccountError(f"Ask for one account or more, and for no more than {MOST}.")
    if options.action == "import":
        options.people = read_people(options.table)
    for name in getattr(options, "names", ()):
        accounts.get(name)
    if "expires" in options:
        options.expires = until(options.expires)


def _create(accounts: Accounts, options: argparse.Namespace) -> None:
    _add(
        accounts,
        [{"name": name} for name in accounts.free_names(options.count, options.prefix)],
        options,
    )


def _import(accounts: Accounts, options: argparse.Namespace) -> None:
    _add(accounts, options.people, options)


def read_people(path: Path) -> list[dict[str, Any]]:
    """The rows of a CSV of registered people; raises AccountError, naming the line."""
    try:
        with _plain_file(path) as file:
            table = csv.DictReader(file)
            columns = [name.strip().lower() for name in table.fieldnames or []]
            table.fieldnames = columns
            rows = [
                {key: (value or "").strip() for key, value in row.items() if key} for row in table
            ]
    except UnicodeDecodeError:
        raise AccountError(f'{path} is not in UTF-8: save it as "CSV UTF-8".') from None
    except csv.Error as problem:
        raise AccountError(f"{path} is not a CSV: {problem}.") from None
    if "name" not in columns:
        raise AccountError(
            f'{path} has no column "name"; its first line is: {", ".join(columns) or "empty"}.'
        )
    people: list[dict[str, Any]] = [
        {**person, "name": person["name"].lower(), "line": line}
        for line, person in enumerate(rows, 2)
        if any(person.values())
    ]
    seen: dict[str, int] = {}
    for person in people:
        if (
            len(person.get("full_name", "")) > LONGEST_NAME
            or not person.get("full_name", "").isprintable()
        ):
            raise AccountError(
                f"{path}, line {person['line']}: full_name has {LONGEST_NAME} characters at most, "
                "and only such that can be printed."
            )
        if person["name"] in seen:
            raise AccountError(
                f"{path}, line {person['line']}: {person['name']!r} stands in line "
                f"{seen[person['name']]} too."
            )
        seen[person["name"]] = person["line"]
    return people


def _plain_file(path: Path) -> TextIO:
    """Open a file to read; nothing is waited for, as for the other end of a pipe.

    Raises AccountError.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as problem:
        raise AccountError(f"{path} cannot be read: {problem.strerror}.") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise AccountError(f"{path} is not a plain file. Name a CSV.")
    return open(handle, encoding="utf-8-sig", newline="")


def _add(
    accounts: Accounts, people: Sequence[Mapping[str, Any]], options: argparse.Namespace
) -> None:
    if not people:
        raise AccountError("That table contains no names.")
    if not is_classroom() and len(accounts.load()) + len(people) > 1:
        raise AccountError(NOT_ROOT)
    _hand_out(accounts, lambda: accounts.create(people, options.expires, options.role), options)


def _reset(accounts: Accounts, options: argparse.Namespace) -> None:
    _hand_out(accounts, lambda: accounts.reset(options.names), options)


def _hand_out(
    accounts: Accounts, make: Callable[[], list[tuple[Account, str]]], options: argparse.Namespace
) -> None:
    """Make accounts or passwords, and their papers; none where the papers have no folder."""
    ip = hub_address.EVERYWHERE if is_classroom() else "127.0.0.1"
    where = options.address or address(accounts.folder) or hub_address.promised(accounts.folder, ip)
    folder = options.out or accounts.folder / "handouts" / datetime.now().strftime(
        "%Y-%m-%dT%H%M%S.%f"
    )
    handout.new_folder(folder)
    try:
        made = make()
    except BaseException:
        with suppress(OSError):
            folder.rmdir()
        raise
    try:
        table, paper = handout.write(folder, made, where)
    except OSError as problem:
        names = " ".join(account.name for account, _ in made)
        raise NotDoneError(NO_PAPERS.format(why=problem, names=names)) from None
    print(
        f"{len(made)} account{'s' if len(made) > 1 else ''}: "
        f"{', '.join(account.name for account, _ in made)}"
    )
    print(
        f"The passwords are only in these files:\n  {table}\n  {paper}   (one slip each, to be cut "
        "apart)"
    )
    if not options.address and not (accounts.folder / LOCK).exists():  # no hub was started here yet
        home = f" --home {accounts.folder}" if options.home else ""
        print(TO_START.format(where=where, more=home + (f" --ip {ip}" if is_classroom() else "")))
        print(AT_ANOTHER)


def _list(accounts: Accounts, options: argparse.Namespace) -> None:
    rows = [("name", "role", "state", "until", "archived", "who")]
    for account in sorted(accounts.load().values(), key=lambda account: account.name):
        archived = local_time(account.archived) if account.archived else ""
        rows.append(
            (
                account.name,
                account.role,
                account.state,
                local_time(account.expires),
                archived,
                account.full_name,
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def _extend(accounts: Accounts, options: argparse.Namespace) -> None:
    for account in accounts.extend(options.names, options.expires):
        print(f"{account.name}: {account.state}, until {local_time(account.expires)}")


def _revoke(accounts: Accounts, options: argparse.Namespace) -> None:
    for account in accounts.revoke(options.names):
        print(
            f"{account.name}: revoked. Its files are kept until `manyhands accounts purge "
            f"{account.name}`."
        )


def _purge(accounts: Accounts, options: argparse.Namespace) -> None:
    names = options.names or [
        name
        for name, account in accounts.load().items()
        if options.ended and account.state != "open"
    ]
    if not names:
        raise AccountError("Give names, or --ended for all accounts that are expired or revoked.")
    wrong = []
    for name in names:
        try:
            archive_path = archive.purge(accounts, name)
            print(
                f"{name}: deleted. Its files are in {archive_path}"
                if archive_path
                else f"{name}: deleted; it had no files."
            )
        except AccountError as problem:  # one home does not keep the others
            wrong.append(str(problem))
    if wrong:
        raise NotDoneError("\n".join(wrong))


def _restore(accounts: Accounts, options: argparse.Namespace) -> None:
    wrong = []
    for name in options.names:
        try:
            print(f"{name}: the files of its last archive are in {archive.restore(accounts, name)}")
        except AccountError as problem:  # one home does not keep the others
            wrong.append(str(problem))
    if wrong:
        raise NotDoneError("\n".join(wrong))


ACTIONS = {
    "create": _create,
    "import": _import,
    "list": _list,
    "extend": _extend,
    "reset": _reset,
    "revoke": _revoke,
    "purge": _purge,
    "restore": _restore,
}

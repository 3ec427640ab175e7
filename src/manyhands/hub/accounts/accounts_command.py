"""`manyhands accounts`: make, list and end trial accounts."""

import csv
import sys
from datetime import datetime
from pathlib import Path

from manyhands.command_line import completed
from manyhands.command_line import parser as command_parser
from manyhands.hub import hub_address
from manyhands.hub.accounts import archive, handout
from manyhands.hub.accounts.table import ATTENDEE, ROLES, AccountError, Accounts, until
from manyhands.hub.folder import LOCK, address, hub_folder, is_classroom, prepare
from manyhands.machine import local_time
from manyhands.units import NotAClone

DESCRIPTION = """Trial accounts of the hub on this machine. A running hub follows every change within seconds.
Passwords are kept as scrypt only: they stand in the hand-out, and nowhere else."""
TIME = "12h, 3d, 2w, 2026-12-01 or 2026-12-01T18:00"
NOT_ROOT = ("Only root can give each attendee a user number and a closed room of their own. "
            "Without root the hub is a demonstration for one person: it takes one account, and there is one, "
            "or you asked for more. Run this as root for a class.")
TO_START = "The papers name {where} : that is where the hub answers when it is started with\n  manyhands hub{more}"
AT_ANOTHER = "For another address: `manyhands accounts reset NAME... --address ADDRESS` prints new papers."


class WrongUsage(AccountError):
    """It was asked for what cannot be."""


def parser():
    made = command_parser("accounts", DESCRIPTION,
                          ["create 20 --expires 3d", "import people.csv --expires 2026-12-01",
                           "extend hand07 --expires 1w", "list"])
    made.add_argument("--home", metavar="FOLDER", help="the hub's folder (default: .manyhands/hub in the clone)")
    actions = made.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = actions.add_parser("create", help="new accounts, and the papers to hand out")
    create.add_argument("count", type=int, metavar="N")
    create.add_argument("--prefix", default="hand", help="names are PREFIX01, PREFIX02 ... (default: hand)")
    several = actions.add_parser("import",
                                 help="accounts for registered people, from a CSV with the column name, "
                                      "and if you like full_name, role, expires")
    several.add_argument("table", type=Path, metavar="CSV")
    for one in (create, several):
        one.add_argument("--expires", required=True, metavar="WHEN", help=TIME)
        one.add_argument("--role", choices=ROLES, default=ATTENDEE)
    reset = actions.add_parser("reset", help="new passwords; opens revoked accounts again")
    for one in (create, several, reset):
        one.add_argument("--address", help="what the papers name (default: where the hub was last started)")
        one.add_argument("--out", type=Path, metavar="FOLDER",
                         help="a new folder for the papers (default: one in the hub's folder)")
    actions.add_parser("list", help="all accounts")
    extend = actions.add_parser("extend", help="a new end")
    extend.add_argument("--expires", required=True, metavar="WHEN", help=TIME)
    revoke = actions.add_parser("revoke", help="end accounts at once; their files stay")
    purge = actions.add_parser("purge", help="delete ended accounts and their homes, once those are archived")
    restore = actions.add_parser("restore",
                                 help="put the files of the newest archive back into the home, beside what is there")
    for one in (reset, extend, revoke, purge, restore):
        one.add_argument("names", nargs="*" if one is purge else "+", metavar="NAME")
    purge.add_argument("--ended", action="store_true", help="all that are expired or revoked")
    return made


def main(argv=None):
    options = completed(parser()).parse_args(argv)
    try:
        folder = hub_folder(options.home)
        prepare(folder)
        ACTIONS[options.action](Accounts(folder), options)
    except (AccountError, NotAClone, OSError) as problem:
        print(f"manyhands accounts: {problem}", file=sys.stderr)
        return 2 if isinstance(problem, WrongUsage) else 1
    return 0


def _create(accounts, options):
    if options.count < 1:
        raise WrongUsage("Ask for one account or more.")
    _add(accounts, [{"name": name} for name in accounts.free_names(options.count, options.prefix)], options)


def _import(accounts, options):
    _add(accounts, read_people(options.table), options)


def read_people(path):
    """The rows of a CSV of registered people; raises AccountError, naming the line."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file)
            columns = [name.strip().lower() for name in table.fieldnames or []]
            table.fieldnames = columns
            people = [{key: (value or "").strip() for key, value in row.items() if key} for row in table]
    except UnicodeDecodeError:
        raise AccountError(f"{path} is not in UTF-8: save it as \"CSV UTF-8\".") from None
    if "name" not in columns:
        raise AccountError(f"{path} has no column \"name\"; its first line is: {', '.join(columns) or 'empty'}.")
    people = [{**person, "name": person["name"].lower(), "line": line} for line, person in enumerate(people, 2)
              if any(person.values())]
    seen = {}
    for person in people:
        if person["name"] in seen:
            raise AccountError(f"{path}, line {person['line']}: {person['name']!r} stands in line "
                               f"{seen[person['name']]} too.")
        seen[person["name"]] = person["line"]
    return people


def _add(accounts, people, options):
    if not people:
        raise AccountError("There is nobody in that table.")
    if not is_classroom() and len(accounts.load()) + len(people) > 1:
        raise AccountError(NOT_ROOT)
    _hand_out(accounts, accounts.create(people, _end_of(options), options.role), options)


def _end_of(options):
    """What --expires says, in seconds since 1970."""
    try:
        return until(options.expires)
    except AccountError as problem:
        raise WrongUsage(str(problem)) from None


def _reset(accounts, options):
    _hand_out(accounts, accounts.reset(options.names), options)


def _hand_out(accounts, made, options):
    ip = hub_address.EVERYWHERE if is_classroom() else "127.0.0.1"
    where = options.address or address(accounts.folder) or hub_address.promised(accounts.folder, ip)
    folder = options.out or accounts.folder / "handouts" / datetime.now().strftime("%Y-%m-%dT%H%M%S.%f")
    table, paper = handout.write(folder, made, where)
    print(f"{len(made)} account{'s' if len(made) > 1 else ''}: {', '.join(account.name for account, _ in made)}")
    print(f"The passwords stand in these files only:\n  {table}\n  {paper}   (one slip each, to be cut apart)")
    if not options.address and not (accounts.folder / LOCK).exists():  # no hub was started here yet
        home = f" --home {accounts.folder}" if options.home else ""
        print(TO_START.format(where=where, more=home + (f" --ip {ip}" if is_classroom() else "")))
        print(AT_ANOTHER)


def _list(accounts, options):
    rows = [("name", "role", "state", "until", "archived", "who")]
    for account in sorted(accounts.load().values(), key=lambda one: one.name):
        archived = local_time(account.archived) if account.archived else ""
        rows.append((account.name, account.role, account.state, local_time(account.expires), archived,
                     account.full_name))
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def _extend(accounts, options):
    for account in accounts.extend(options.names, _end_of(options)):
        print(f"{account.name}: {account.state}, until {local_time(account.expires)}")


def _revoke(accounts, options):
    for account in accounts.revoke(options.names):
        print(f"{account.name}: revoked. Its files stay until `manyhands accounts purge {account.name}`.")


def _purge(accounts, options):
    names = options.names or [
        name for name, account in accounts.load().items() if options.ended and account.state != "open"
    ]
    if not names:
        raise WrongUsage("Say which: names, or --ended for all that are expired or revoked.")
    wrong = []
    for name in names:
        try:
            kept = archive.purge(accounts, name)
            print(f"{name}: deleted. Its files are in {kept}" if kept else f"{name}: deleted; it had no files.")
        except AccountError as problem:  # one home does not keep the others
            wrong.append(str(problem))
    if wrong:
        raise AccountError("\n".join(wrong))


def _restore(accounts, options):
    for name in options.names:
        print(f"{name}: the files of its last archive lie in {archive.restore(accounts, name)}")


ACTIONS = {"create": _create, "import": _import, "list": _list, "extend": _extend, "reset": _reset, "revoke": _revoke,
           "purge": _purge,
           "restore": _restore}

"""The sandbox in which an attendee's server runs: bubblewrap, started by root.

Root is left before anything of the attendee's runs.

Inside: the person's own user number, without any privilege and no way to one; own processes, own
network with nothing but a loopback, own /tmp; of the machine's files the system's programs, the
Python environment and the course without its solutions (an instructor sees those, too), all read
only, and the person's home. Two ways lead through the wall: the socket that the server answers on,
opened outside and handed in, and the sockets in the folder `run/sockets` of the hub, which is seen
in every sandbox: the hub's own and its services'.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.hub.folder import sockets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from manyhands.hub.accounts.table import Account


COURSE, SOLUTIONS, SOCKETS = "/course", "/solved", "/run/manyhands"
HUB_SOCKET = f"{SOCKETS}/hub.sock"
SPACES = [
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
]
FROM_ETC = [
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "localtime",
    "timezone",
    "fonts",
    "ssl/openssl.cnf",
    "ssl/certs",
    "mime.types",
    "bash.bashrc",
    "inputrc",
    "terminfo",
]


def home_of(name: str) -> str:
    """The home folder as it is named inside."""
    return f"/home/{name}"


def why_none() -> str | None:
    """Why no sandbox can be made here, or None."""
    program = shutil.which("bwrap")
    if not program:
        return "bubblewrap is missing: apt-get install bubblewrap"
    done = subprocess.run(
        [program, *_frame(), *_drop(65534), "/bin/true"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    return (
        None
        if done.returncode == 0
        else f"bubblewrap cannot make a room here: {done.stderr.strip()}"
    )


def command(
    account: Account,
    inner: Iterable[str],
    *,
    folder: str | Path,
    home: str | Path,
    memory_bytes: int,
    shared: Iterable[str | Path] = (),
    shown: Mapping[str, str] | tuple[()] = (),
) -> list[str]:
    """The command that runs `inner` in the account's sandbox; open file numbers are handed in with it.

    folder: the hub's. home: the person's. shared: folders of the machine that the person may write
    to as their modes say. shown: {folder of the machine: its name inside} of what only this person
    is to read.
    """
    from manyhands.isolation.bubblewrap import read_only_folders

    arguments = [shutil.which("bwrap") or "bwrap", *_frame(memory_bytes)]
    for name, path in etc_files(account, folder).items():
        arguments += ["--ro-bind", str(path), f"/etc/{name}"]
    for place in read_only_folders():
        arguments += [*_way_to(place), "--ro-bind", place, place]
    for place in map(str, shared):
        arguments += [*_way_to(place), "--bind", place, place]
    for device in gpu_devices(account, Path("/dev").glob("nvidia*")):
        arguments += ["--dev-bind", device, device]
    arguments += ["--ro-bind", str(Path(folder) / "course"), COURSE]
    for place, name in dict(shown).items():
        arguments += ["--ro-bind", place, name]
    arguments += [*_way_to(SOCKETS), "--ro-bind", str(sockets(folder)), SOCKETS]
    inside = home_of(account.name)
    arguments += [*_way_to(inside), "--bind", str(home), inside, "--chdir", inside]
    return [*arguments, *_drop(account.uid), *inner]


def etc_files(account: Account, folder: str | Path) -> dict[str, Path]:
    """Write what a sandbox shows of /etc in place of the machine's own: {name: path}."""
    paths = {}
    for name, text in _files(account).items():
        paths[name] = Path(folder) / "run" / f"{account.name}.{name}"
        paths[name].write_text(text)
        paths[name].chmod(0o644)
    return paths


def gpu_devices(account: Account, devices: Iterable[str | Path]) -> list[str]:
    """Of the machine's GPU devices those that a person gets.

    That is one GPU, in turn, and what all of them need (`nvidiactl` and its like).
    """
    names = sorted(map(str, devices), key=lambda name: (len(name), name))
    gpus = [name for name in names if name.rpartition("nvidia")[2].isdigit()]
    own = [gpus[account.uid % len(gpus)]] if gpus else []
    return own + [name for name in names if name not in gpus]


def _frame(memory_bytes: int = 2**26) -> list[str]:
    """The empty sandbox with the system's programs; its memory folders count as memory."""
    from manyhands.isolation.bubblewrap import system_folders

    arguments = [
        *SPACES,
        "--die-with-parent",
        "--new-session",
        "--hostname",
        "classroom",
        *system_folders(),
    ]
    arguments += [
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--perms",
        "0755",
        "--dir",
        "/run",
        "--perms",
        "0755",
        "--dir",
        "/etc",
    ]
    for place in ("/tmp", "/dev/shm", "/var/tmp"):
        arguments += [
            *_way_to(place),
            "--perms",
            "1777",
            "--size",
            str(memory_bytes),
            "--tmpfs",
            place,
        ]
    for name in FROM_ETC:
        arguments += [*_way_to(f"/etc/{name}"), "--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return arguments


def _drop(uid: int) -> list[str]:
    """Leave root for good.

    bubblewrap has already forbidden to gain privileges by starting a program.
    """
    return [
        "--",
        shutil.which("setpriv") or "setpriv",
        f"--reuid={uid}",
        f"--regid={uid}",
        "--clear-groups",
        "--bounding-set=-all",
        "--inh-caps=-all",
        "--ambient-caps=-all",
        "--",
    ]


def _way_to(place: str) -> list[str]:
    """The folders above a place, open to be passed through.

    bubblewrap would close those that it makes.
    """
    parents = [
        str(parent)
        for parent in reversed(Path(place).parents)
        if str(parent) not in ("/", "/dev", "/tmp")
    ]
    return [word for parent in parents for word in ("--perms", "0755", "--dir", parent)]


def _files(account: Account) -> dict[str, str]:
    return {
        "passwd": (
            "root:x:0:0:root:/root:/bin/sh\n"
            f"{account.name}:x:{account.uid}:{account.uid}:{account.name}:{home_of(account.name)}:/bin/bash\n"
        ),
        "group": f"root:x:0:\n{account.name}:x:{account.uid}:\n",
        "hosts": "127.0.0.1 localhost classroom\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
        "host.conf": "multi on\n",
    }

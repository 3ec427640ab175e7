"""What a cluster needs of this machine before it starts anything.

It needs a loopback interface, room for its files, and Python settings under which its processes can
run. What is missing is said in a sentence, within a second.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import tempfile

from manyhands.cluster.faults.kinds import ClusterNotStarted

ANSWER_S = 2.0
# of a cluster's folder: logs, connections, the record of each rank
FOLDER_BYTES, RANK_BYTES = 4 << 20, 1 << 20
LARGEST_FILE = 1 << 20  # a rank's record has 160 KiB, and logs grow


def check_loopback() -> None:
    """Raise ClusterNotStarted where this machine cannot connect to itself."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), ANSWER_S).close()
    except OSError as error:
        # no file can be opened: what is started next says so
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return
        raise ClusterNotStarted(SENTENCES["loopback"].format(why=error.strerror or error)) from None


def make_folder(world_size: int) -> str:
    """The new folder of a cluster, in MANYHANDS_FOLDER or among the temporary files.

    Raises ClusterNotStarted where it cannot be made, or where its files would not fit.
    """
    place = os.environ.get("MANYHANDS_FOLDER")
    try:
        folder = tempfile.mkdtemp(prefix="manyhands-", dir=place)
    except OSError as error:
        place = place or "the folder for temporary files"
        raise ClusterNotStarted(
            SENTENCES["no folder"].format(place=place, why=error.strerror or error)
        ) from None
    needed = FOLDER_BYTES + RANK_BYTES * world_size
    free = shutil.disk_usage(folder).free
    why = None if free >= needed else SENTENCES["disk"].format(free=free >> 10, needed=needed >> 10)
    why = why or _too_small_files()
    if why:
        os.rmdir(folder)
        raise ClusterNotStarted(SENTENCES["no room"].format(place=os.path.dirname(folder), why=why))
    return folder


def _too_small_files() -> str | None:
    try:
        from resource import RLIMIT_FSIZE, getrlimit
    except ImportError:  # not on Windows
        return None
    allowed = getrlimit(RLIMIT_FSIZE)[0]
    if 0 <= allowed < LARGEST_FILE:  # below 0: no limit
        return SENTENCES["file size"].format(allowed=allowed >> 10)
    return None


def without_errors() -> dict[str, str]:
    """The variables of a process of a cluster that undo PYTHONWARNINGS=error.

    ipykernel and ipyparallel give warnings themselves, and would end.
    """
    given = os.environ.get("PYTHONWARNINGS", "")
    remaining = [
        setting for setting in given.split(",") if not setting.strip().lower().startswith("error")
    ]
    return {"PYTHONWARNINGS": ",".join(remaining)} if ",".join(remaining) != given else {}


SENTENCES = {
    "loopback": (
        "This machine cannot connect to itself (127.0.0.1: {why}), but the ranks of a cluster need "
        "this connection to the notebook. Is the loopback interface up? `ip link set lo up` starts "
        "it, whereas a container or a sandbox must be started with a network."
    ),
    "no folder": (
        "A folder for the cluster's files cannot be made in {place}: {why}. Set the environment "
        "variable TMPDIR (or MANYHANDS_FOLDER, where it is set) to a folder in which you may "
        "write, and restart Jupyter."
    ),
    "no room": "The cluster's files do not fit into {place}: {why}",
    "disk": (
        "{free} KiB are free there, but {needed} KiB are needed. Delete files, or set the "
        "environment variable TMPDIR (or MANYHANDS_FOLDER, where it is set) to a folder on a "
        "different disk, and restart Jupyter."
    ),
    "file size": (
        "no file may be larger than {allowed} KiB here. Run `ulimit -f unlimited` in the shell "
        "before you start Jupyter there. If this is refused, ask the administrator."
    ),
    "warnings": (
        "PYTHONWARNINGS=error applies to this kernel but not to the ranks, because ipykernel gives "
        "warnings there. To turn warnings into errors on the ranks, begin a cell with `import "
        'warnings` and `warnings.simplefilter("error")`.'
    ),
}

"""Which task of TensorFlow's cluster a rank is: the last TF_CONFIG that it has set, kept in a file.

A rank that waits in TensorFlow's C++ for its peers may hold Python's lock, and cannot be asked
then.
"""

from __future__ import annotations

import functools
import json
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.cluster.payloads import TaskConfig

NAME = "TF_CONFIG"


def keep(path: str) -> None:
    """Write each TF_CONFIG of this process to the file `path`, as soon as it is set."""
    environ = type(os.environ)
    original = environ.__setitem__

    def write(value: str) -> None:
        part = f"{path}.{os.getpid()}.{threading.get_ident()}.part"
        with open(part, "w") as file:
            file.write(value)
        os.replace(part, path)

    @functools.wraps(original)
    def set_variable(variables: os._Environ[str], name: str, value: str) -> None:
        original(variables, name, value)
        if name == NAME:
            write(value)

    # to hear of it is what this is for
    environ.__setitem__ = set_variable  # type: ignore[method-assign]
    with suppress(FileNotFoundError):  # of the process that this one replaces
        os.remove(path)
    if NAME in os.environ:
        write(os.environ[NAME])


def read(path: str) -> TaskConfig | None:
    """The TF_CONFIG of a rank, or None.

    It is {"cluster": {kind: [address, ...]}, "task": {"type": kind, "index": number}}.
    """
    try:
        with open(path) as file:
            config = json.load(file)
        cluster = {
            str(kind): [str(address) for address in addresses]
            for kind, addresses in config["cluster"].items()
        }
        return {
            "cluster": cluster,
            "task": (str(config["task"]["type"]), int(config["task"]["index"])),
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        # none, or one that TensorFlow refuses
        return None

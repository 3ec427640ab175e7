"""Files and folders that are written in one step, so that nobody ever sees a half of one."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def replace_folder(target: str | Path) -> Iterator[Path]:
    """Give an empty folder to fill, which then takes the place of `target`.

    It does so when the block has ended without an error.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in [
        *target.parent.glob(f".new-{target.name}-*"),
        *target.parent.glob(f".old-{target.name}-*"),
    ]:
        shutil.rmtree(left, ignore_errors=True)  # by a process that was killed
    made = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".new-{target.name}-"))
    try:
        yield made
        made.chmod(0o755)
        old = made.with_name(made.name.replace(".new-", ".old-", 1))
        if target.is_symlink():
            target.unlink()
        elif target.exists():
            os.rename(target, old)
        os.rename(made, target)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def write_file(path: Path, text: str, new: bool = False, mode: int = 0o600) -> None:
    """Write a file in one step that survives a crash.

    The file is for this user alone where `mode` does not say otherwise. With `new`, one that is
    there is never replaced.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")  # mode 600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.link(temporary, path) if new else os.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)

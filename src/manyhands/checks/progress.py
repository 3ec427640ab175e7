"""The learner's progress in `work/.manyhands/progress.json`.

It is `{"06_ddp": {"points": 5, "max": 8, "when": ..., "hints": [], "seen": [], "predictions":
{...}, "ran": {...}, "last": {...}}}`. The `points` are the result of `manyhands check`, and `seen`
are the checks that were green in the notebook. `ran` holds the ids of the cells that have run, for
each notebook by its path inside `work`, and `last` is the cell that ran last.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import tempfile
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

from manyhands.machine import progress_file as path_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Guess = int | float | str


class Prediction(TypedDict, total=False):
    """A prediction of the learner. What follows `locked` comes when it is settled."""

    guess: Guess
    locked: str
    came: Guess
    right: bool
    surprise: float
    settled: str


class Place(TypedDict):
    """Where the learner was last."""

    notebook: str
    cell: str
    when: str


class Entry(TypedDict, total=False):
    """What is remembered of a unit (see the head of this module)."""

    points: float
    max: float
    when: str
    hints: list[str]
    seen: list[str]
    predictions: dict[str, Prediction]
    ran: dict[str, list[str]]
    last: Place


Entries = dict[str, Entry]


def work_folder(start: str | Path | None = None) -> Path | None:
    """The `work` folder above `start` (by default the current folder), or None.

    Progress is remembered only there.
    """
    here = Path(start or Path.cwd()).resolve()
    return next((folder for folder in (here, *here.parents) if folder.name == "work"), None)


def load(work: str | Path) -> Entries:
    """All that is remembered and can be read.

    An absent or a broken file counts as nothing, and so does a value of a different type from the
    one that the course writes.
    """
    return _readable(_stored(work))


def _stored(work: str | Path) -> Any:
    """What the file holds, whatever that is, or None if it cannot be read."""
    try:
        return json.loads(path_in(work).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _readable(stored: Any) -> Entries:
    """The entries whose values have the types that the head of this module gives.

    Anything else in an entry is kept.
    """
    entries = stored.items() if isinstance(stored, dict) else ()
    return {unit: _readable_entry(entry) for unit, entry in entries if isinstance(entry, dict)}


def _readable_entry(entry: dict[str, Any]) -> Entry:
    readable = {key: value for key, value in entry.items() if _TYPES.get(key, _anything)(value)}
    if not {"points", "max"} <= readable.keys():
        readable = {key: value for key, value in readable.items() if key not in ("points", "max")}
    for key in {"hints", "seen"} & readable.keys():
        readable[key] = [name for name in readable[key] if isinstance(name, str)]
    if "predictions" in readable:
        readable["predictions"] = {
            name: made for name, made in readable["predictions"].items() if _is_prediction(made)
        }
    if "ran" in readable:
        readable["ran"] = {
            name: [cell for cell in cells if isinstance(cell, str)]
            for name, cells in readable["ran"].items()
            if isinstance(cells, list)
        }
    return cast("Entry", readable)  # each value has been looked at


def _anything(value: Any) -> bool:
    return True


def _is_number(value: Any) -> bool:
    """Whether this is a number. False for NaN, and for whole numbers that no float can hold."""
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    )


def _is_answer(value: Any) -> bool:
    return isinstance(value, str) or _is_number(value)


def _is_time(value: Any) -> bool:
    try:
        return bool(datetime.fromisoformat(value).tzinfo)
    except (TypeError, ValueError):
        return False


def _is_prediction(made: Any) -> bool:
    """Whether this is a prediction that is open or completely settled."""
    if not (isinstance(made, dict) and _is_answer(made.get("guess"))):
        return False
    return not {"came", "right", "surprise"} & made.keys() or (
        _is_answer(made.get("came"))
        and isinstance(made.get("right"), bool)
        and _is_number(made.get("surprise"))
    )


def _is_place(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("notebook"), str)
        and isinstance(value.get("cell"), str)
        and _is_time(value.get("when"))
    )


_TYPES: dict[str, Callable[[Any], bool]] = {
    "points": _is_number,
    "max": lambda value: _is_number(value) and value > 0,
    "when": _is_time,
    "hints": lambda value: isinstance(value, list),
    "seen": lambda value: isinstance(value, list),
    "predictions": lambda value: isinstance(value, dict),
    "ran": lambda value: isinstance(value, dict),
    "last": _is_place,
}


def add_result(work: str | Path, unit: str, points: float, maximum: float) -> None:
    """Remember the last grade of a unit."""
    with _changing(work) as units:
        when = datetime.now(timezone.utc).isoformat(timespec="seconds")
        _entry(units, unit).update({"points": points, "max": maximum, "when": when})


def add_seen(work: str | Path, unit: str, name: str) -> None:
    """Remember that a check was seen green in the notebook.

    If the file cannot be written, this is forgotten.
    """
    with suppress(OSError), _changing(work) as units:
        entry = _entry(units, unit)
        entry["seen"] = sorted({*seen_green(entry), name})


def seen_green(entry: Entry) -> list[str]:
    """The checks of a unit's entry that were seen green."""
    return entry.get("seen", [])


def add_run(work: str | Path, unit: str, notebook: str, cell: str) -> None:
    """Remember that a cell of a notebook, named by its path inside `work`, has run.

    If the file cannot be written, this is forgotten.
    """
    with suppress(OSError), _changing(work) as units:
        entry = _entry(units, unit)
        cells = entry.setdefault("ran", {}).setdefault(notebook, [])
        if cell not in cells:
            cells.append(cell)
        when = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        entry["last"] = {"notebook": notebook, "cell": cell, "when": when}


def unit_here(start: str | Path | None = None) -> tuple[Path, str] | None:
    """(the `work` folder, the name NN_topic of the unit in whose lab we are), or None.

    The lab's folder, or one inside it, is `start`, which by default is the current folder.
    """
    here = Path(start or Path.cwd()).resolve()
    work = work_folder(here)
    parts = here.relative_to(work).parts if work else ()
    return (work, parts[0]) if work and parts and parts[0][:2].isdecimal() else None


def add_hint(work: str | Path, unit: str, name: str) -> None:
    """Remember that a hint was opened. If the file cannot be written, this is forgotten."""
    with suppress(OSError), _changing(work) as units:
        hints = _entry(units, unit)["hints"]
        if name not in hints:
            hints.append(name)


def lock_prediction(work: str | Path, unit: str, name: str, guess: Guess) -> Prediction:
    """Remember a prediction, unless one exists already.

    Return what is remembered, {"guess", "locked", ...}.
    """
    with _changing(work) as units:
        when = datetime.now(timezone.utc).isoformat(timespec="seconds")
        predicted = _predictions(_entry(units, unit))
        return predicted.setdefault(name, {"guess": guess, "locked": when}).copy()


def settle_prediction(
    work: str | Path, unit: str, name: str, came: Guess, right: bool, surprise: float
) -> Prediction:
    """Remember the outcome of a prediction, if it exists and has none yet.

    Return what is remembered, or {}.
    """
    with _changing(work) as units:
        prediction = _predictions(_entry(units, unit)).get(name, {})
        if prediction and "came" not in prediction:
            when = datetime.now(timezone.utc).isoformat(timespec="seconds")
            prediction.update(
                {
                    "came": came,
                    "right": right,
                    "surprise": round(surprise, 3),
                    "settled": when,
                }
            )
        return prediction.copy()


def predictions(work: str | Path, unit: str) -> dict[str, Prediction]:
    """The predictions of a unit, {name: {"guess", "locked"}}.

    A prediction that is settled also has "came", "right", "surprise" and "settled".
    """
    return _predictions(_entry(load(work), unit))


def hints(work: str | Path, unit: str) -> list[str]:
    """The names of the hints that were opened."""
    return _entry(load(work), unit)["hints"]


def _entry(units: Entries, unit: str) -> Entry:
    entry = units.get(unit)
    if not isinstance(entry, dict):
        entry = units[unit] = {}
    if not isinstance(entry.get("hints"), list):
        entry["hints"] = []
    return entry


def _predictions(entry: Entry) -> dict[str, Prediction]:
    if not isinstance(entry.get("predictions"), dict):
        entry["predictions"] = {}
    return entry["predictions"]


@contextmanager
def _changing(work: str | Path) -> Iterator[Entries]:
    """Read the file, let the caller change it, and write it in one step.

    A lock keeps other writers out.
    """
    path = path_in(work)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.parent / "progress.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stored = _stored(work)
        units = _readable(stored)
        if path.exists() and units != stored:
            _keep_aside(path)
        yield units
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix="progress-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(units, file, indent=1, sort_keys=True)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise


def _keep_aside(path: Path) -> None:
    """Keep a copy of a file that is about to lose what could not be read in it.

    One copy of each content is enough.
    """
    content, number = path.read_bytes(), 1
    while (copy := path.with_name(f"progress.broken{number}.json")).exists():
        if copy.read_bytes() == content:
            return
        number += 1
    copy.write_bytes(content)

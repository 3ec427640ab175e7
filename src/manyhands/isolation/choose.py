"""Where a submission runs.

It runs inside bubblewrap if it works here, else in a container if that does, else not, or without a
sandbox.
"""

from pathlib import Path

from manyhands.isolation import bubblewrap, container


def why_none() -> str | None:
    """Why there is no sandbox here, or None where there is one.

    There is a line for bubblewrap and one for containers.
    """
    if not contained():
        return None
    lack = container.why_none()
    return lack and f"{bubblewrap.namespaces()}\n{lack}"


def contained() -> bool:
    """Whether the sandbox here, if there is one, is a container: bubblewrap comes first."""
    return isinstance(bubblewrap.namespaces(), str)


def image() -> str:
    """The image of the container that is the sandbox here.

    It is "" where the sandbox is another, or none.
    """
    return container.identity() if contained() else ""


def shows(path: str | Path) -> bool:
    """Whether what runs in the sandbox can read this file."""
    shown = ("/usr", *bubblewrap.read_only_folders())
    return not contained() and any(
        Path(place).resolve() in Path(path).resolve().parents for place in shown
    )

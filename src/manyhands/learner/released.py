"""The labs that a class has released: what lies in the exchange to be fetched."""

from pathlib import Path

COURSE = "manyhands"  # nbgrader's name of it


def labs_in(exchange):
    """The names of the labs that are in the exchange to be fetched."""
    return sorted(path.name for path in (Path(exchange) / COURSE / "outbound").glob("*") if path.is_dir())

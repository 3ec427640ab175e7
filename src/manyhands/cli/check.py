"""`manyhands check`: grade a lab, then show the points on the start page."""

from __future__ import annotations

from manyhands.grading import check_command
from manyhands.learner import start_page


def main(argv: list[str]) -> int:
    """Run `manyhands check` and renew the start page; returns the exit status."""
    status = check_command.main(argv)
    start_page.renew()
    return status

"""`manyhands check`: grade a lab, then show the points on the start page."""

from manyhands.cli import start_page
from manyhands.grading import command


def main(argv):
    status = command.main(argv)
    start_page.renew()
    return status

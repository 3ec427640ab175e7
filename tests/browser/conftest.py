"""A real `manyhands lab` in a copy of the course."""

from pathlib import Path

import pytest
from running_course import Course


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(item.fspath).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.browser)


@pytest.fixture
def start_course():
    """`start_course(folder)` starts one; all are stopped at the end."""
    started = []

    def start(root, *arguments):
        started.append(Course(root, *arguments))
        return started[-1]

    yield start
    for course in started:
        course.stop()

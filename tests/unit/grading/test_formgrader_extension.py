"""Formgrader on the hub runs as root.

So which addresses does it answer? A name in them cannot lead anywhere else.
"""

import re

import pytest
from nbgrader.server_extensions.formgrader import apihandlers, handlers

from manyhands.grading.nbgrader import formgrader_extension

ROUTES = [
    *formgrader_extension.narrow(handlers.default_handlers),
    *formgrader_extension.narrow(apihandlers.default_handlers),
]


def answers(path):
    """The handlers' names for a path, as it comes from the browser."""
    return [handler.__name__ for pattern, handler, *_ in ROUTES if re.fullmatch(pattern, path)]


@pytest.mark.parametrize(
    "path",
    [
        "manage_assignments",
        "manage_submissions/02_mirrored_strategy",
        "gradebook/02_mirrored_strategy/02_mirrored_strategy",
        "submissions/0a1b2c/",
        "submissions/0a1b2c/next",
        "manage_students/hand01/02_mirrored_strategy",
        "api/submission/02_mirrored_strategy/hand01/autograde",
        "api/assignment/02_mirrored_strategy/collect",
        "api/grade/0a1b2c",
    ],
)
def test_formgrader_is_there(path):
    assert answers(f"/formgrader/{path}")


@pytest.mark.parametrize(
    "name", ["..", "../x", "..%2f..%2fetc", "%2e%2e", "a%2fb", ".manyhands", "a/../b", "", "-x"]
)
@pytest.mark.parametrize(
    "path",
    [
        "api/assignment/{}",
        "api/assignment/{}/release",
        "api/submission/02_x/{}/autograde",
        "api/assignment/02_x/{}/release_feedback",
        "manage_submissions/{}",
        "submissions/{}",
        "api/student/{}",
    ],
)
def test_a_name_is_a_name(path, name):
    assert answers("/formgrader/" + path.format(name)) == []


def test_no_folder_is_opened_and_no_file_handed_out():
    assert answers("/formgrader/") == ["Start"]
    assert answers("/formgrader/submissions/0a1b2c/../../../.manyhands/hub/cookie_secret") == []
    assert answers("/formgrader/submissions/0a1b2c/picture.png") == []

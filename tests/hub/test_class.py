"""A lab's way through a class, in a real browser.

It is released, fetched, solved, handed in, graded in formgrader, given back, and read.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from lab_page import LOAD_MS, Notebook

import tiny
from hub.running_hub import Visitor
from in_browser import ALL_RULES, shuts_out
from manyhands.authoring import labs
from manyhands.grading.nbgrader import gradebook
from manyhands.grading.nbgrader.class_settings import Classroom

UNIT = "90_tiny"


@pytest.fixture(scope="module")
def people(hub):
    """{role: (name, password)}, and a lab of two questions, released."""
    clone = Path(hub.environment["MANYHANDS_ROOT"])
    for name, data in labs.release(tiny.Lab(clone).solution.parent, UNIT).items():
        (clone / "labs" / UNIT).mkdir(parents=True, exist_ok=True)
        (clone / "labs" / UNIT / name).write_bytes(data)
    made = {
        role: hub.create(1, "1h", "--prefix", role, "--role", role)[0]
        for role in ("attendee", "assistant", "instructor")
    }
    # before anybody's server starts: what is there then is to be fetched
    assert command(hub, "release", "90") == f"{UNIT}: released.\n"
    return made


def command(hub, *words):
    """What `manyhands ...` says on the hub's machine."""
    environment = hub.environment | {"MANYHANDS_HUB": str(hub.folder)}
    done = subprocess.run(
        [sys.executable, "-m", "manyhands", *words],
        env=environment,
        umask=0o077,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Person:
    """Somebody at the browser, logged in with the password on the slip, on the page Start_Here."""

    def __init__(self, hub, page, name, password):
        self.address, self.page, self.name = hub.address, page, name
        page.context.clear_cookies()
        page.goto(hub.address)
        page.fill("#username_input", name)
        page.fill("#password_input", password)
        page.click("#login_submit")
        self.start = page.locator(".jp-MarkdownViewer")
        self.start.locator("h1").wait_for(timeout=4 * LOAD_MS)

    def assignments(self):
        """Open the Assignment List as people do, and wait until it is there."""
        self.page.locator(".lm-MenuBar-itemLabel", has_text=re.compile("^Nbgrader$")).click()
        items = self.page.locator(".lm-Menu-itemLabel:visible")
        assert items.all_inner_texts() == ["Assignment List"], (
            "what instructors' tools need is not for attendees"
        )
        items.click()
        self.page.locator("#nbgrader-assignment-list").get_by_text(UNIT).first.wait_for(
            timeout=LOAD_MS
        )

    def press(self, button, then):
        """Press a button of the Assignment List; wait until a list (by its id) shows `then`."""
        self.page.locator("#nbgrader-assignment-list").get_by_role(
            "button", name=button, exact=True
        ).click()
        list_id, text = then
        self.page.locator(f"#{list_id} .list_item", has_text=text).first.wait_for(timeout=LOAD_MS)

    def open_lab(self):
        listed = self.page.locator("#fetched_assignments_list")
        listed.locator(".assignment-notebooks-link").click()
        listed.locator(".nested_list_item a").click()
        return Notebook(self.page)


def test_a_lab_goes_out_and_comes_back(hub, people, page, screenshots):
    def picture(name):
        page.wait_for_timeout(1000)
        page.screenshot(path=screenshots / f"class_{name}.png")

    attendee, clone = people["attendee"][0], Classroom(hub.environment["MANYHANDS_ROOT"])
    work = hub.accounts.home(attendee) / "work" / UNIT
    person = Person(hub, page, *people["attendee"])
    assert "Assignment List" in person.start.inner_text() and not work.exists()
    person.assignments()
    picture("1_released")
    person.press("Fetch", then=("fetched_assignments_list", UNIT))
    picture("2_fetched")
    assert page.get_by_role("button", name="Validate").count() == 0
    lab = person.open_lab()
    for answer in ("def square(x):\n    return x", "def total(xs):\n    return math.fsum(xs)"):
        lab.replace(lab.cell("NotImplementedError"), answer)
    lab.run_all()
    assert "FAIL" in lab.shown(lab.cell('Report("square")')) and "PASS" in lab.shown(
        lab.cell('Report("total")')
    )
    picture("3_checked")
    lab.saved(work / f"{UNIT}.ipynb")
    page.locator(".lm-TabBar-tabLabel", has_text="Assignments").click()
    person.press("Submit", then=("submitted_assignments_list", "UTC"))
    picture("4_handed_in")

    grader = Person(hub, page, *people["instructor"])
    grader.start.get_by_role("link", name="Formgrader").wait_for()
    picture("5_instructor")
    formgrader = grader.start.get_by_role("link", name="Formgrader").get_attribute("href")
    page.goto(formgrader)
    row = page.locator("#main-table tr", has_text=UNIT)
    row.locator(".collect a").click()
    page.locator(".modal").get_by_text("Successfully collected").wait_for(timeout=LOAD_MS)
    picture("6_collected")
    page.goto(f"{formgrader.rstrip('/')}/formgrader/manage_submissions/{UNIT}")
    page.locator("#main-table tr", has_text=attendee).locator(".autograde a").click()
    page.locator(".modal").get_by_text("Successfully autograded").wait_for(timeout=4 * LOAD_MS)
    picture("7_graded")
    assert clone_marks(clone)[attendee] == {"square-check": (0, None), "total-check": (2, None)}
    page.goto(f"{formgrader.rstrip('/')}/formgrader/gradebook/{UNIT}/{UNIT}")
    row = page.locator("#main-table tr", has_text=attendee)
    # names are covered, so that nobody is graded by their name
    row.locator(".glyphicon.name-hidden").click()
    row.get_by_role("link", name=attendee).click()
    for field, text in (("square-check", "1"), ("square-comment", "The idea is right.")):
        # the page has then heard what the gradebook holds
        page.locator(f"#{field}[placeholder]").fill(text, timeout=LOAD_MS)
        with page.expect_response("**/formgrader/api/*/*"):
            page.locator(f"#{field}").press("Tab")
    picture("8_marked")
    assert clone_marks(clone)[attendee]["square-check"] == (0, 1)
    assert "0 graded, " in command(hub, "grade", "90"), "what the button did counts"
    assert "1 of them released" in command(hub, "feedback", "90", "--student", attendee)

    person = Person(hub, page, *people["attendee"])
    ready = person.start.locator("p", has_text="Handed in, feedback ready")
    ready.wait_for(timeout=LOAD_MS)
    picture("9_feedback_ready")
    assert len(list((work / "feedback").rglob("*.html"))) == 1, "the page has fetched it"
    ready.get_by_role("link").click()
    shown = page.frame_locator(".jp-HTMLViewer iframe")
    shown.get_by_text("3 of 4 points").wait_for(timeout=LOAD_MS)
    assert shown.get_by_text("The idea is right.").count() == 1
    picture("10_feedback_read")
    page.goto(next((work / "feedback").rglob("*.html")).as_uri())
    page.set_viewport_size({"width": 390, "height": 844})
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        picture(f"11_feedback_{scheme}")
        assert (
            shuts_out(page, [*ALL_RULES, "best-practice"], ("moderate", "serious", "critical"))
            == []
        )
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def clone_marks(classroom):
    """{attendee: {check: (automatic, by hand)}} of the gradebook."""
    with gradebook.opened(classroom) as book:
        return {
            submission.student.id: {
                row.name: (row.auto_score, row.manual_score)
                for notebook in submission.notebooks
                for row in notebook.grades
            }
            for submission in book.assignment_submissions(UNIT)
        }


def test_formgrader_is_for_instructors(hub, people):
    for role, status in (("attendee", 403), ("assistant", 403), ("instructor", 200)):
        visitor = Visitor(hub)
        visitor.log_in(*people[role])
        assert visitor.get("services/formgrader/").status_code == status, role
        assert (
            visitor.get("services/formgrader/formgrader/api/assignments").status_code == status
        ), role


def test_formgraders_server_has_nothing_else(hub, people):
    """It runs as root, but has no files, no kernels and no terminals.

    No way leads from a name to another folder.
    """
    visitor = Visitor(hub)
    visitor.log_in(*people["instructor"])
    answer = visitor.get("services/formgrader/formgrader/api/assignments")
    assert UNIT in [assignment["name"] for assignment in json.loads(answer.text)]
    for path in (
        "api/contents",
        "files/nbgrader_config.py",
        "api/kernels",
        "api/terminals",
        "terminals/1",
        "lab",
        "tree",
        "formgrader/api/assignment/..%2f..",
        "formgrader/submissions/x/..%2f..%2fpyproject.toml",
    ):
        assert visitor.get(f"services/formgrader/{path}").status_code == 404, path

"""A learner's way through the course, in a real browser."""

import os
import re
import time

import nbformat
import pytest
from lab_page import GRAPH, RUN_MS, Notebook, follow, open_start
from running_course import ROOT, Course, copy_course, left_over

LAB = "work/06_ddp/06_ddp.ipynb"
BUSY = (
    "%%px\nimport torch.distributed as dist\ndist.init_process_group()\nif dist.get_rank() == 1:\n "
    "   dist.barrier()\nwhile True:\n    pass"
)
LIVE_LINE = re.compile(r"\b(has|have) been in \w+ for ")
CLUSTER = (
    "from manyhands import Cluster\n\ncluster = Cluster(nodes=1, ranks_per_node=2, framework=None)"
)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """One for all tests of this file; nothing is left when it ends."""
    running = Course(copy_course(tmp_path_factory.mktemp("course") / "clone"))
    yield running
    running.stop()
    assert left_over(running.root) == []


def outputs(cell):
    """All text that a saved cell shows."""
    shown = []
    for output in cell.get("outputs", []):
        shown += [
            output.get("text", ""),
            output.get("data", {}).get("text/plain", ""),
            output.get("evalue", ""),
        ]
    return "\n".join(shown)


def checks(notebook):
    """What the check cells of a saved lab show."""
    return "\n".join(
        outputs(cell) for cell in notebook.cells if "check" in cell.metadata.get("tags", [])
    )


def busy_machine():
    return os.getloadavg()[0] > os.cpu_count()


def test_start_page_is_a_page(course, page, screenshots):
    start = open_start(page, course.address())
    page.wait_for_timeout(1500)
    page.screenshot(path=screenshots / "start_here.png")
    assert "manyhands: distributed training" in start.inner_text()
    assert start.locator("tr").count() == 22
    assert page.locator(".jp-FileEditor, .jp-Dialog, .Toastify__toast").count() == 0
    assert "Nbgrader" not in page.locator(".lm-MenuBar").first.inner_text()
    assert start.locator("tr", has_text="coming").count() == 0
    assert page.locator(".jp-DirListing-itemName").all_inner_texts()[:4] == [
        "Start_Here.md",
        "00_preflight_tutorial.ipynb",
        "00_preflight",
        "01_data_parallel_tutorial.ipynb",
    ]
    page.set_viewport_size({"width": 1024, "height": 768})
    page.screenshot(path=screenshots / "start_here_1024.png")
    widths = start.locator(".jp-RenderedHTMLCommon").evaluate(
        "page => [page.scrollWidth, page.clientWidth]"
    )
    assert widths[0] <= widths[1], "the table of units fits beside the file browser"
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    start.locator("h1").wait_for(timeout=60_000)
    page.locator("#jp-left-stack").wait_for(state="hidden")
    page.screenshot(path=screenshots / "start_here_390.png")
    assert start.bounding_box()["width"] > 250, "a phone shows the page and not the file browser"


def test_from_start_here_to_the_wait_for_graph_and_the_healed_cluster(course, page, screenshots):
    open_start(page, course.address())
    unit = follow(page, "00", "tutorial")
    page.screenshot(path=screenshots / "00_before.png")
    unit.run_all()
    graph = unit.panel.locator(GRAPH).first
    unit.show(graph, screenshots / "00_graph.png")
    assert graph.is_visible()
    page.wait_for_function(
        "document.querySelectorAll('.jp-RenderedSVG img:not([alt])').length === 0", timeout=20_000
    )
    assert graph.get_attribute("alt") == "wait-for graph"
    page.set_viewport_size({"width": 700, "height": 900})
    unit.show(graph, screenshots / "00_graph_narrow.png")
    wide = graph.evaluate(
        "img => [img.getBoundingClientRect().width, "
        "img.closest('.jp-OutputArea-output').clientWidth]"
    )
    assert wide[0] <= wide[1], "a figure is no wider than its column"
    page.set_viewport_size({"width": 1280, "height": 900})
    saved = unit.saved(course.root / "work/00_preflight_tutorial.ipynb")
    assert not any(LIVE_LINE.search(outputs(cell)) for cell in saved.cells), (
        "the report has replaced the line"
    )
    faults = [i for i, cell in enumerate(saved.cells) if "The cluster is healed" in outputs(cell)]
    assert faults, "no cell tells that the cluster was healed"
    after = [cell for cell in saved.cells[faults[-1] + 1 :] if cell.cell_type == "code"]
    assert any("[rank 3]" in outputs(cell) for cell in after), (
        "no rank answered after the healing: "
        f"{[(cell.execution_count, outputs(cell)) for cell in after]}"
    )
    unexpected = [
        cell.source
        for cell in saved.cells
        if "raises-exception" not in cell.metadata.get("tags", [])
        and any(output.output_type == "error" for output in cell.get("outputs", []))
    ]
    assert unexpected == []
    unit.show(unit.panel.locator(".jp-Cell").last, screenshots / "00_end.png")
    page.locator(".lm-TabBar-tab", has_text="Start_Here.md").click()
    start = page.locator(".jp-MarkdownViewer")
    start.locator("tr", has_text="Preflight").get_by_text(
        re.compile(r"✓\s(\d+)\sof\s\1\scells")
    ).wait_for(timeout=20_000)
    page.screenshot(path=screenshots / "start_here_left_off.png")
    start.locator("p", has_text="Continue where you left off").get_by_role(
        "link", name="00 Preflight"
    ).click()
    page.locator(".lm-TabBar-tab.lm-mod-current", has_text="00_preflight_tutorial.ipynb").wait_for()


def test_the_form_of_an_earlier_kernel_says_how_to_see_it_again(course, page, screenshots):
    gone = (
        "display({'application/vnd.jupyter.widget-view+json': {'model_id': 'gone', 'version_major':"
        " 2, 'version_minor': 0}, 'text/plain': ''}, raw=True)"
    )
    nbformat.write(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(gone)]),
        course.root / "work" / "Form.ipynb",
    )
    address = course.address()
    open_start(page, address)
    page.goto(address.split("?")[0] + "lab/tree/work/Form.ipynb")
    form = Notebook(page)
    form.run(form.cell("display("))
    form.panel.get_by_text(
        "To see this question and your prediction again, run this cell."
    ).wait_for()
    page.screenshot(path=screenshots / "form_gone.png")


def test_stop_button_stops_all_ranks(course, page, screenshots):
    address = course.address()
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(source)
            for source in (CLUSTER, "%%px\n1 + 1", BUSY, "%%px\nnever_set")
        ]
    )
    nbformat.write(notebook, course.root / "work" / "Scratch.ipynb")
    open_start(page, address)
    page.goto(address.split("?")[0] + "lab/tree/work/Scratch.ipynb")
    scratch = Notebook(page)
    scratch.run(scratch.cell("from manyhands"))
    scratch.run(scratch.cell("never_set"))
    shown = scratch.shown(scratch.cell("never_set"))
    assert "'never_set' is not defined" in shown and "have not run in this kernel" not in shown, (
        "a rank is not a new notebook"
    )
    scratch.run(scratch.cell("1 + 1"))
    scratch.start(scratch.cell("while True"))
    line = scratch.panel.get_by_text(
        re.compile(r"^Rank 1 has been in barrier for \d+ s; rank 0 computes\.$")
    )
    line.wait_for(timeout=RUN_MS)
    page.screenshot(path=screenshots / "waiting.png")
    assert scratch.stop() < (9 if busy_machine() else 3)  # 2 s, and what the browser adds
    assert line.count() == 0 and "STOPPED" in scratch.shown(scratch.cell("while True")), (
        "the report has replaced the line"
    )
    scratch.run(scratch.cell("1 + 1"))
    page.screenshot(path=screenshots / "stopped.png")
    assert "[rank 1] Out: 2" in scratch.shown(scratch.cell("1 + 1"))


def answers(unit):
    """The solution's answer cells."""
    solution = nbformat.read(ROOT / "solutions" / unit / f"{unit}.ipynb", as_version=4)
    return [cell.source for cell in solution.cells if "solution" in cell.metadata.get("tags", [])]


def first_definition(source):
    """`def average(` of an answer, or the beginning of a text: its stub has the same."""
    return re.search(r'(def|class) \w+\(|^\w+ = r?"""', source, re.MULTILINE)[0]


def test_a_notebook_of_yesterday_says_what_to_run_and_runs_it(course, page, screenshots):
    open_start(page, course.address())
    lab = follow(page, "04", "your lab")
    stub = lab.cell("def tree_broadcast(")
    lab.run(stub)
    assert "This kernel has no cluster yet" in lab.shown(stub)
    lab.show(stub, screenshots / "04_new_kernel.png")
    stub.locator("button.manyhands-run-above").click()
    stub.get_by_role("group", name="new kernel").wait_for(state="detached", timeout=RUN_MS)
    lab.wait()
    assert "cluster" not in lab.shown(stub) and "ranks" in lab.shown(lab.cell("cluster = Cluster("))


@pytest.fixture(scope="module")
def lab(course, chromium):
    """The lab of unit 06 as a learner meets it, run once; for the tests below, in their order."""
    page = chromium.new_page()
    open_start(page, course.address())
    lab = follow(page, "06", "your lab")
    lab.run_all()
    yield lab
    page.close()


def test_lab_before_solving(course, lab, screenshots):
    card = lab.panel.get_by_role("group", name="check: ").first
    lab.show(card, screenshots / "06_unsolved.png")
    assert "○ not begun 0/" in card.inner_text() and "✗" not in card.inner_text()
    assert "broadcast_state is not written yet" in lab.shown(lab.cell("check.broadcast("))
    unsolved = checks(lab.saved(course.root / LAB))
    assert "FAIL 0/" in unsolved, "its plain form is as a terminal shows it"


def test_wrong_answer_shows_the_line_that_helps(lab, screenshots):
    stub, check = lab.cell("def broadcast_state("), lab.cell("check.broadcast(")
    lab.replace(stub, lab.text(stub).replace("raise NotImplementedError()", "return None"))
    lab.run(stub)
    lab.run(check)
    lab.show(check, screenshots / "06_wrong.png")
    shown = lab.shown(check)
    assert (
        "FAIL 0/1" in shown
        and "mistake:" in shown
        and "expected:" in shown
        and "not written yet" not in shown
    )


def test_a_check_that_hangs_shows_its_card_and_below_it_the_folded_report(lab, screenshots):
    stub, check = lab.cell("def broadcast_state("), lab.cell("check.broadcast(")
    lab.replace(
        stub,
        lab.text(stub).replace(
            "return None", "dist.barrier(group=group) if dist.get_rank() else None"
        ),
    )
    lab.run(stub)
    lab.run(check)
    lab.show(check, screenshots / "06_hang.png")
    outputs, fold = (
        check.locator(".jp-OutputArea-output"),
        check.locator("details", has_text="Report from the ranks: HANG").first,
    )
    above = [text for text in outputs.all_inner_texts() if text.strip()]
    assert above[0].startswith("broadcast: 0 of ") and len(above) == 1, above
    assert not fold.locator("pre").first.is_visible()
    fold.locator("summary").first.click()
    lab.show(fold, screenshots / "06_hang_open.png")
    assert (
        "wait in barrier" in fold.locator("pre").first.inner_text()
        and fold.locator("img").first.is_visible()
    )


def test_lab_after_solving(course, lab, screenshots):
    for answer in answers("06_ddp"):
        lab.replace(lab.cell(first_definition(answer)), answer)
    lab.run_all()
    lab.show(lab.panel.get_by_role("group", name="check: ").first, screenshots / "06_solved.png")
    solved = checks(lab.saved(course.root / LAB))
    assert "PASS" in solved and "FAIL" not in solved
    lab.page.locator(".lm-TabBar-tab", has_text="Start_Here.md").click()
    renewed = lab.page.locator(".jp-MarkdownViewer tr", has_text="DistributedDataParallel")
    # without a reload
    renewed.get_by_text(re.compile(r"(\d+)\sof\s\1\s*seen\sgreen")).wait_for(timeout=20_000)
    lab.page.screenshot(path=screenshots / "start_here_seen.png")


def test_the_next_morning_the_tabs_are_open_again(tmp_path, page, screenshots):
    clone = copy_course(tmp_path / "clone")
    evening = Course(clone)
    open_start(page, evening.address())
    follow(page, "04", "tutorial")
    saved = clone / "work/.manyhands/jupyter/workspaces"
    deadline = time.monotonic() + 30
    while not any("04_collectives_tutorial" in path.read_text() for path in saved.glob("*")):
        assert time.monotonic() < deadline, "JupyterLab saves which tabs are open"
        page.wait_for_timeout(200)
    evening.stop()
    morning = Course(clone)
    open_start(page, morning.address())
    page.locator(".lm-TabBar-tabLabel", has_text="04_collectives_tutorial.ipynb").wait_for()
    page.screenshot(path=screenshots / "next_morning.png")
    assert page.locator(".lm-TabBar-tab.lm-mod-current", has_text="Start_Here.md").count() == 1
    morning.stop()
    assert left_over(clone) == []

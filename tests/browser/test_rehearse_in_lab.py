"""A learner rehearses a cell in JupyterLab: the finding is read there, with its picture."""

import nbformat
import pytest
from lab_page import Notebook, open_start
from running_course import copy_course

CELLS = [
    (
        "from manyhands import Cluster\n\ncluster = Cluster(nodes=1, ranks_per_node=4, "
        'framework="torch")'
    ),
    (
        "%%px\nimport torch\nimport torch.distributed as "
        'dist\n\ndist.init_process_group("gloo")\nrank, size = dist.get_rank(), '
        "dist.get_world_size()"
    ),
    (
        "%%px --rehearse\nmine, other = torch.full((4,), float(rank)), torch.empty(4)\nsent = "
        "dist.isend(mine, (rank + 1) % size)\ndist.recv(other, (rank - 1) % "
        "size)\nsent.wait()\nprint(other)"
    ),
    "cluster.stop()",
]
PICTURE = '.jp-RenderedSVG img[src*="with%20NCCL"]'


@pytest.fixture
def course(tmp_path, start_course):
    return start_course(copy_course(tmp_path / "clone"))


def test_a_finding_is_read_beside_its_picture(course, page, screenshots):
    address = course.address()
    nbformat.write(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS]),
        course.root / "work" / "Rehearse.ipynb",
    )
    page.set_viewport_size({"width": 1024, "height": 900})
    open_start(page, address)
    page.goto(address.split("?")[0] + "lab/tree/work/Rehearse.ipynb")
    unit = Notebook(page)
    rehearsed = unit.cell("--rehearse")
    for cell in (unit.cell("import Cluster"), unit.cell("init_process_group"), rehearsed):
        unit.run(cell)
    shown = unit.shown(rehearsed)
    assert (
        shown.count("HANGS: ") == 1
        and "ranks 0, 1, 2, 3" in shown
        and "What to do: " in shown
        and "It cannot see branches" in shown
        and "tensor([3., 3., 3., 3.])" in shown
    )
    picture = rehearsed.locator(PICTURE)
    picture.wait_for(timeout=60_000)
    assert picture.bounding_box()["width"] > 300
    unit.show(rehearsed.locator(".jp-OutputArea-output").first, screenshots / "rehearse_lab.png")
    unit.show(picture, screenshots / "rehearse_picture.png")
    unit.run(unit.cell("cluster.stop"))

"""What a kernel shows, and what is handed in, that costs the grader more than its length.

It costs far more memory or time.
"""

from pathlib import Path

import psutil
import pytest
from nbformat.v4 import new_code_cell
from test_messages import TOOLS

from manyhands.isolation.kernel_limits import Limits

MOST_BYTES = 250 * 2**20  # more than it has before
FLOODS = {
    "one update of many displays": """
for number in range(400):
    tell("display_data", dict(data={"text/plain": ""}, metadata={}, transient=dict(display_id="x")))
tell("update_display_data", dict(data={"application/json": [[]] * 100_000}, metadata={}, transient=dict(display_id="x")))""",
    "headers and parents that are large": """
large = b"{" + b",".join(b'"%d":{}' % number for number in range(500_000)) + b"}"
raw({**HEADER, "more": [[]] * 2_000_000}, parent["header"], {}, {})
raw(HEADER, [[]] * 2_000_000, {}, {})
raw(HEADER, parent["header"], [[]] * 2_000_000, {})
raw(large, large, large, {})""",
    "content of very many values": """
for number in range(3):
    raw(HEADER, parent["header"], {}, dict(data={"application/json": [{}] * 1_200_000}, metadata={}, transient={}))""",
    "a message of very many long parts": """
part = bytes(50 * 2**20)
for number in range(11):
    kernel.iopub_socket.send(part, flags=2, copy=False)
kernel.iopub_socket.send(b"")""",
}


class Peak:
    """The most memory that this process has in the block, in bytes more than before."""

    def __enter__(self):
        Path("/proc/self/clear_refs").write_text("5")  # forgets the peak until now
        self.before = psutil.Process().memory_info().rss
        return self

    def __exit__(self, *_):
        status = dict(
            line.split(":") for line in Path("/proc/self/status").read_text().splitlines()
        )
        self.bytes = int(status["VmHWM"].split()[0]) * 1024 - self.before


@pytest.mark.parametrize("name", FLOODS)
def test_what_a_kernel_shows_costs_the_grader_no_more_memory_than_is_set_aside(lab, attack, name):
    notebook = lab.handed_in()
    notebook.cells.insert(1, new_code_cell(TOOLS + FLOODS[name]))
    with Peak() as peak:
        got = attack(notebook, limits=Limits(cell_s=60, total_s=90, output_bytes=600 * 2**20))
    assert got.points == (4, 4) and peak.bytes < MOST_BYTES, (got.notes, peak.bytes)

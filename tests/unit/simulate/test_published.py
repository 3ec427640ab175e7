"""Published tables: fitted rows are met, and no more is claimed than holds.

The other rows are within the error that docs/SIMULATE.md states.
"""

import re
from pathlib import Path

import messages
import pytest

from manyhands.simulate import placement, published, ring_s
from manyhands.simulate.collective_costs import halving_doubling_s

# the largest error of a row that was not fitted, in parts of the published number; measured, and
# rounded up
WORST = {
    "Inception V3, K80, parameter servers": 0.013,
    "ResNet-50, K80, parameter servers": 0.032,
    "Inception V3, P100 of a DGX-1": 0.006,
    "ResNet-50, P100 of a DGX-1": 0.033,
    "ResNet-152, P100 of a DGX-1": 0.01,
    "VGG-16, P100 of a DGX-1": 0.06,
    "AlexNet, P100 of a DGX-1": 0.121,
    "torchgpipe, AmoebaNet-D, 2 stages": 0.022,
    "torchgpipe, AmoebaNet-D, 4 stages": 0.168,
    "torchgpipe, AmoebaNet-D, 8 stages": 0.044,
    "GPipe, AmoebaNet-D, 2 stages": 0.081,
    "GPipe, AmoebaNet-D, 4 stages": 0.28,
    "GPipe, AmoebaNet-D, 8 stages": 0.51,
    # here without its two largest rows, which take a second each
    "GPT of 1.7 to 1008 billion, A100": 0.041,
}


def test_every_table_has_its_error_told():
    assert [table.name for table in published.tables()] == list(WORST)


@pytest.mark.parametrize("table", published.tables(), ids=lambda table: table.name)
def test_rows_that_were_not_fitted(table):
    _, rows = published.predicted(table._replace(rows=table.rows[:8]))
    errors = [abs(row.predicted / row.published - 1) for row in rows]
    # Inception V3 on 64 K80 is published as faster than ranks that are 1 % apart can be
    assert max(error for error, row in zip(errors, rows, strict=True) if row.fitted) < (
        0.012 if "Inception V3, K80" in table.name else 1e-4
    )
    worst = max(error for error, row in zip(errors, rows, strict=True) if not row.fitted)
    assert worst <= WORST[table.name] and worst > 0.8 * WORST[table.name] - 0.002
    assert len(table.fitted) == len(table.guess) == 2 and table.source


def test_rows_of_which_only_one_gpus_speed_is_known():
    """As docs/SIMULATE.md says: 24 of 25 within 10 %, and VGG-16 on 8 GPUs 11 % too slow."""
    errors = {
        (name, gpus): predicted / number - 1
        for name, gpus, number, predicted in published.unfitted()
    }
    assert len(errors) == 25 and sum(abs(error) <= 0.1 for error in errors.values()) == 24
    assert errors[("VGG-16, P100 of a DGX-1", 8)] == pytest.approx(-0.108, abs=0.005)
    assert errors[("AlexNet, P100 of a DGX-1", 8)] == pytest.approx(0.033, abs=0.005)


def test_the_one_ring_of_nccl_1_crosses_a_dgx_1_through_pcie():
    """The ring of eight, message by message.

    NVLink joins the devices 0 to 3 and 4 to 7, and the host's memory the rest.
    """
    nvlinks = {(a, b) for half in (range(4), range(4, 8)) for a in half for b in half}
    nvlinks |= {pair for a in range(4) for pair in ((a, a + 4), (a + 4, a))}
    machine, n_bytes = published.nccl_1(0.7), 244e6

    def link_of(sender, receiver):
        rate = 20e9 if (sender, receiver) in nvlinks else 12e9
        return (sender, receiver), 5e-6, 0.7 * rate

    for gpus in (2, 4, 8):
        played = messages.stream(messages.ring_of_nodes(gpus, n_bytes), link_of)
        assert placement.ring(machine, gpus, 1, n_bytes) == pytest.approx(played, rel=0.01), gpus


def test_goyal_is_cheaper_here_than_in_the_paper():
    """+12 % is published: the network explains less than 1 %, ranks that are 2 % apart some 8 %."""
    assert 0 < published.goyal(44) / published.goyal(1) - 1 < 0.01
    assert 0.06 < published.goyal(44, 0.02) / published.goyal(1, 0.02) - 1 < 0.1


def test_goyals_three_times_faster_than_a_ring_is_for_small_messages_only():
    link = (30e-6, 0.7 * 6.25e9)
    assert ring_s(32, 1e6, *link) / halving_doubling_s(32, 1e6, *link) > 3
    assert ring_s(32, 1e8, *link) / halving_doubling_s(32, 1e8, *link) < 1.1


def test_horovod_comes_near():
    assert 0.9 < published.horovod(512) / 512 / published.horovod(1) < 0.96


def test_the_examples_of_the_documentation_run(capsys):
    text = Path(__file__).parents[3].joinpath("docs", "SIMULATE.md").read_text()
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), {})
    first, last = capsys.readouterr().out.strip().splitlines()
    assert first.startswith("Step(seconds=0.0") and 2400 < float(last) < 4 * 2400

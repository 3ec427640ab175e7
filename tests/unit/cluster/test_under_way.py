"""What is looked at between cells, without processes.

That is when the ranks are asked, what is said, and what must not break a cell.
"""

import errno
from types import SimpleNamespace

import pytest

from manyhands.cluster import ClusterNotStarted
from manyhands.cluster.faults.under_way import UnderWay
from manyhands.cluster.faults.unfinished import Unfinished
from manyhands.cluster.host import machine_requirements
from manyhands.cluster.on_rank import agent, tally

NAMER = lambda lines: ("line 1 of this cell", "x")  # noqa: E731
SUM = {"call": "all_reduce", "shape": [2], "dtype": "float32", "lines": [], "ended": False}


class Ranks:
    """Two ranks, of which rank 0 has begun a call that rank 1 has not joined.

    It is a message, or with `ahead` a collective.
    """

    def __init__(self, ahead):
        self.asked, self._ahead = [], ahead

    def facts(self, begun):
        return {
            rank: {
                "rank": rank,
                "size": 2,
                "groups": [["0", [0, 1], 5 + (self._ahead and rank == 0)]],
                "begun": 0 if rank else begun,
            }
            for rank in (0, 1)
        }

    def ask(self, function, *args):
        self.asked.append((function.__name__, *args))
        if function is not agent.list_unfinished:
            return {}
        return {
            rank: {
                **facts,
                "calls": {"0": [SUM] if self._ahead and rank == 0 else []},
                "streams": [],
                "messages": [],
                "names": [],
                "busy": False,
            }
            for rank, facts in self.facts(1).items()
        }


class Cells(UnderWay):
    ranks, world_size, restarted = [0, 1], 2, False

    def __init__(self, ranks):
        self._unfinished = Unfinished(ranks.ask)
        self._recovery = SimpleNamespace(sound=True, restart=self.restart)
        self._places = SimpleNamespace(find=lambda lines, file: ("line 1", "x", None))

    def restart(self):
        self.restarted = True


def end_cell(unfinished, ranks, begun, tell=True):
    unfinished.note({rank: {"begun": facts} for rank, facts in ranks.facts(begun).items()})
    return unfinished.look([0, 1], NAMER, tell)


def test_ranks_are_asked_again_only_after_a_new_call():
    ranks = Ranks(ahead=False)
    unfinished = Unfinished(ranks.ask)
    for begun, asked in [(0, 0), (1, 1), (1, 1), (0, 1), (2, 2)]:
        assert end_cell(unfinished, ranks, begun) == "" and len(ranks.asked) == asked
    assert set(ranks.asked) == {("list_unfinished",)}


def test_stacks_are_asked_for_only_where_something_is_described():
    ranks = Ranks(ahead=True)
    assert "rank 0 started it, and rank 1 did not" in end_cell(Unfinished(ranks.ask), ranks, 1)
    assert ranks.asked == [("list_unfinished",), ("list_unfinished", True)]


@pytest.mark.parametrize("tell", [True, False])
def test_given_up_is_said_of_what_was_reported(tell, capsys):
    ranks = Ranks(ahead=True)
    cells = Cells(ranks)
    end_cell(cells._unfinished, ranks, 1, tell)
    cells._give_up("1", None)
    assert ranks.asked[-1][0] == "renew_groups" and cells._recovery.sound and not cells.restarted
    assert ("Given up before this cell: all_reduce(float32 [2])" in capsys.readouterr().out) == tell


def test_a_rank_that_dies_while_the_next_cell_is_looked_at_is_healed(capsys):
    ranks = Ranks(ahead=True)
    cells = Cells(ranks)
    end_cell(cells._unfinished, ranks, 1)

    def die(*args):
        raise RuntimeError("Engine died")

    cells._unfinished._ask = die
    cells._give_up("if rank == 1:\n    dist.all_reduce(x)", None)
    assert cells.restarted and "The cluster starts new ranks" in capsys.readouterr().out


def test_another_version_of_torch_does_not_break_a_cell(monkeypatch):
    # and no _world
    monkeypatch.setattr(tally, "_c10d", lambda: SimpleNamespace(is_initialized=lambda: True))
    assert tally.Tally().facts() == tally.Tally().list_unfinished({}) == {}


@pytest.mark.parametrize(
    "number, is_said", [(errno.EMFILE, False), (errno.ENFILE, False), (errno.ENETUNREACH, True)]
)
def test_a_lack_of_open_files_is_not_a_lack_of_loopback(number, is_said, monkeypatch):
    def create_server(address):
        raise OSError(number, "no")

    monkeypatch.setattr(machine_requirements.socket, "create_server", create_server)
    if is_said:
        with pytest.raises(ClusterNotStarted, match="cannot connect to itself"):
            machine_requirements.check_loopback()
    else:
        machine_requirements.check_loopback()

"""Lines of a cell as the learner counts them, and what a cluster may be given."""

import types
from argparse import ArgumentTypeError

import pytest
from IPython.core.error import UsageError

from manyhands.cluster import check_arguments
from manyhands.cluster.engines.emulated import link
from manyhands.cluster.faults.kinds import Where
from manyhands.cluster.faults.source_lines import Places
from manyhands.cluster.magic import _first_line, _ranks


def spot(file, line, function="<module>"):
    return {"file": file, "path": file, "line": line, "function": function}


@pytest.mark.parametrize(
    "code, compiled, shown",
    [
        ("x = 1\nhere", 2, 3),
        ("\n\nx = 1\nhere\n", 2, 5),
        ("  \n\t\nx = 1\nhere", 2, 5),
        ("# why\n\nx = 1\nhere", 4, 5),
        ("\r\n\r\nx = 1\r\nhere\r\n", 2, 5),
        ("\n    x = 1\n\n    here", 3, 5),
        ("x = '\x0c'\ny = 2\x0c\nhere", 3, 4),
        ("\nif x:\n\there", 2, 4),
        ("!echo a \\\n  b\nx = 1\n\nhere", 4, 6),
        ("%time x = 1\nhere", 2, 3),
        ("\n\nhere", 1, 4),
    ],
    ids=repr,
)
def test_a_line_is_that_of_the_cell_as_it_is_written(code, compiled, shown):
    places = Places()
    file = places.add(code, 2)  # below the line with %%px
    place, source, line = places.find([spot(file, compiled)], file)
    assert (place, source.strip(), line) == (f"line {shown} of this cell", "here", shown)


@pytest.mark.parametrize(
    "code, compiled, shown",
    [("%%time\nx = 1\nhere", 2, 4), ("\n%%time\n\n\nhere", 1, 6), ("%%time\r\nhere", 1, 3)],
    ids=repr,
)
def test_below_a_second_magic_it_is_found_too(code, compiled, shown):
    places = Places()
    file = places.add(code, 2)
    below = [spot(file, 1), spot("<timed exec>", compiled)]
    assert places.find(below, file) == (f"line {shown} of this cell", "here", shown)
    assert places.callers(below, file) == [], "the line of the magic is no caller"


def test_a_line_magic_is_told_by_its_own_line():
    places = Places()
    file = places.add("x = 1\n%time here", 2)
    assert places.find([spot(file, 2), spot("<timed exec>", 1)], file)[:2] == (
        "line 3 of this cell",
        "%time here",
    )


def test_a_function_of_an_earlier_cell_is_told_by_that_cell():
    places = Places()
    before, now = places.add("\n\ndef f():\n    return 1 / 0", 2), places.add("\nf()", 2)
    lines = [spot(now, 1), spot(before, 2, "f")]
    assert places.find(lines, now) == (
        "line 5 of the cell that begins with `def f():`",
        "    return 1 / 0",
        5,
    )
    assert places.callers(lines, now) == [("line 3 of this cell", "f()")]


@pytest.mark.parametrize(
    "cell, body, line",
    [
        ("%%px\nx", "x\n", 2),
        ("\n\n%%px\nx\n", "x\n", 4),
        ("%%time\n%%px --setup\n\nx", "\nx\n", 3),
        ("  %%px\n  x = 1\n  y", "x = 1\ny\n", 2),
        ("%%px\r\nx\r\n", "x\r\n", 2),
        ("run(cells)", "x\n", 2),
    ],
    ids=repr,
)
def test_where_the_body_of_a_cell_begins(cell, body, line):
    kernel = types.SimpleNamespace(get_parent=lambda: {"content": {"code": cell}})
    assert _first_line(types.SimpleNamespace(kernel=kernel), body) == line


def test_where_there_is_no_place_none_is_promised():
    for state in ("waits", "computes"):
        assert Where(0, state, call="barrier").describe().endswith("at an unknown line")


@pytest.mark.parametrize(
    "text, why",
    [
        ("0-99999999", "there is no rank 99999999"),
        ("abc", "write 0,2 or 0-2"),
        ("3-1", "write 0,2 or 0-2"),
        ("-1", "write"),
        ("0,", "write"),
    ],
)
def test_ranks_that_cannot_be_are_told(text, why):
    with pytest.raises(ArgumentTypeError, match=why):
        _ranks(text)


@pytest.mark.parametrize(
    "ranks, why",
    [
        (range(10**9), "There is no rank 4; the ranks go from 0 to 3"),
        ([], "names no rank"),
        ("0-2", "names no rank"),
        (-1, "There is no rank -1"),
        ([1, "2"], "There is no rank 2"),
        (2.5, "names no rank"),
    ],
    ids=repr,
)
def test_ranks_are_looked_at_one_by_one(ranks, why):
    with pytest.raises(ValueError, match=why):
        check_arguments.check_ranks(ranks, 4)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), "soon", "2", True, [1]], ids=repr)
def test_seconds_are_a_number_above_0(wrong):
    with pytest.raises(ValueError, match="patience_s must be a number above 0, not"):
        check_arguments.check_seconds("patience_s", wrong)


@pytest.mark.parametrize("text", ["soon", "nan", "-1", "0"])
def test_a_number_in_the_environment_is_checked_too(text, monkeypatch):
    monkeypatch.setenv("MANYHANDS_PATIENCE_S", text)
    with pytest.raises(
        ValueError,
        match=(
            f"the environment variable MANYHANDS_PATIENCE_S must be a number above 0, not '{text}'"
        ),
    ):
        check_arguments.read_setting("MANYHANDS_PATIENCE_S", 10)


@pytest.mark.parametrize(
    "option",
    [{"memory_mib": -1}, {"memory_mib": 1.5}, {"threads_per_rank": 0}, {"nodes": "2"}],
    ids=repr,
)
def test_numbers_of_things_are_whole(option):
    with pytest.raises(ValueError, match="must be whole numbers from 1 up"):
        check_arguments.check_shape(
            **{
                "nodes": 1,
                "ranks_per_node": 1,
                "framework": None,
                "profile": "local",
                "threads_per_rank": 1,
                "memory_mib": None,
                **option,
            }
        )


def test_a_link_is_given_in_numbers():
    with pytest.raises(ValueError, match="rate_mbit must be above 0"):
        link("emulated", 2, rate_mbit="fast")


@pytest.mark.parametrize(
    "options, why",
    [
        ("--patience -1", "patience_s must be a number above 0"),
        ("--limit nan", "limit_s must be"),
        ("--ranks 7", "There is no rank 7"),
    ],
)
def test_the_magic_says_it_in_a_sentence(options, why):
    from manyhands import Cluster
    from manyhands.cluster.faults.unfinished import Unfinished
    from manyhands.cluster.magic import RankMagics
    from manyhands.cluster.turn import Turn

    cluster = Cluster.__new__(Cluster)  # without processes: it must not come so far
    cluster.nodes, cluster.ranks_per_node, cluster._places, cluster._use, cluster._turn = (
        1,
        4,
        Places(),
        lambda: None,
        Turn("cluster"),
    )
    cluster._unfinished = Unfinished(None)
    magics = RankMagics()
    magics.cluster = cluster
    with pytest.raises(UsageError, match=why):
        magics.px(options, "1")


def test_the_magic_says_that_there_is_no_cluster():
    """A start that fails leaves `%%px` so that it says what it needs.

    ipyparallel's own `%%px` would say that --setup is unknown.
    """
    from IPython.core.interactiveshell import InteractiveShell

    from manyhands import Cluster

    shell = InteractiveShell.instance()
    try:
        with pytest.raises(ValueError, match="nodes"):
            Cluster(nodes=0)
        with pytest.raises(
            UsageError, match="%%px needs a cluster, but none is running in this notebook"
        ):
            shell.run_cell_magic("px", "--setup", "1")
    finally:
        InteractiveShell.clear_instance()

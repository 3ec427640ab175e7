"""What `cluster.launch` shows on a terminal while the script runs."""

from pathlib import Path

import pytest

from manyhands.cluster.launch import run_script


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
    ],
)
def test_a_ranks_name_has_its_colour_where_the_reader_wants_any(
    environment, coloured, monkeypatch, capsys
):
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    run_script._live_printer({0: "rank 0"}, Path("train.py"))(0, b"a line\n")
    shown = capsys.readouterr().out
    assert "rank 0" in shown and "a line" in shown and ("\x1b[" in shown) is coloured

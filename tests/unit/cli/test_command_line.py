"""The `manyhands` command as it is typed.

What it answers to slips, its version, its help, and what a shell completes.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from manyhands import cli
from manyhands.grading import check_command
from manyhands.grading.classroom import class_commands

ROOT = Path(__file__).resolve().parents[3]


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", "manyhands", *words],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )


def completions(line, tmp_path):
    """What a shell would offer behind `line`."""
    out = tmp_path / "offered"
    environ = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(out),
    }
    subprocess.run([sys.executable, "-m", "manyhands"], env=environ, timeout=60, cwd=ROOT)
    return [word.strip() for word in out.read_text().split("\n")]


def test_the_version_is_that_of_the_package():
    assert run("--version").stdout.startswith("manyhands 0.")


def test_each_command_is_in_one_group_and_in_the_usage():
    assert sum(map(len, cli.GROUPS.values())) == len(cli.COMMANDS)
    assert all(f"manyhands {name} " in cli.usage() for name in cli.COMMANDS)


@pytest.mark.parametrize(
    ("typed", "meant"), [("chek", "check"), ("Collect", "collect"), ("bild", "build")]
)
def test_a_slip_is_understood(typed, meant, capsys):
    assert cli.main([typed]) == 2
    assert f"Did you mean `manyhands {meant}`?" in capsys.readouterr().err


def test_what_is_like_nothing_gets_no_proposal(capsys):
    assert cli.main(["xyzzy"]) == 2
    assert "Did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize("command", [name for name in cli.COMMANDS if name != "completion"])
def test_the_help_of_each_command_shows_examples_that_its_parser_takes(command, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    help_text = capsys.readouterr().out
    assert ended.value.code == 0 and f"examples:\n  manyhands {command}" in help_text


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["nosuch.ipynb"], "There is no file nosuch.ipynb."),
        (["99"], "There is no lab '99'"),
    ],
)
def test_check_says_what_is_wrong_with_what_was_typed(words, why, capsys):
    assert check_command.main(words) == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("command", ["rehearse", "clinic", "predict"])
def test_what_is_no_script_is_told_without_running_anything(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for script, why in (
        ("nosuch.py", f"there is no file nosuch.py in {tmp_path}: name an existing script."),
        (".", ". is a folder: name the script in it that you start with torchrun."),
    ):
        assert cli.main([command, script]) == 2
        assert capsys.readouterr().err == f"manyhands {command}: {why}\n"
    (tmp_path / "train.py").write_text("raise SystemExit('it ran')")
    assert cli.main([command, "train.py", "--ranks", "0"]) == 2
    assert capsys.readouterr().err.startswith(f"manyhands {command}: --ranks must be ")
    with pytest.raises(SystemExit) as ended:
        cli.main([command])
    assert ended.value.code == 2 and capsys.readouterr().err.endswith(
        "name a script, or the command that starts it: torchrun --nproc-per-node 2 train.py\n"
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            ["init", "nosuch", "ours"],
            (
                "there is no challenge 'nosuch'. There are: big_batch, does_not_fit, lame_rank, "
                "slow_links."
            ),
        ),
        (["try", "nosuch"], "nosuch is not a folder. `manyhands hack init "),
        (["verify", "nosuch.record"], "there is no file nosuch.record."),
        (
            ["judge", "nosuch", "--key", "judge.key"],
            "there is no file judge.key. `manyhands certificate --new-key judge.key` makes a key.",
        ),
        (["judge", "nosuch", "--key", "."], ". is a folder, but must be a file."),
        (["submit", "nosuch", "--event", "autumn", "--team", "A"], "nosuch is not a folder."),
        (["status", "--event", "autumn"], "Name both, the event and the team"),
    ],
)
def test_the_hackathon_says_what_is_wrong_with_what_was_typed(
    words, why, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["hack", *words]) == 2
    assert capsys.readouterr().err.startswith(f"manyhands hack: {why}")


def test_ctrl_c_ends_a_command_with_a_line(monkeypatch, capsys):
    def interrupted(argv):
        raise KeyboardInterrupt

    monkeypatch.setattr("manyhands.rehearsal.rehearse_command.main", interrupted)
    assert cli.main(["rehearse", "train.py"]) == 130
    assert capsys.readouterr().err == "\nmanyhands rehearse: stopped.\n"


def test_check_says_that_a_planned_unit_is_coming(tmp_path):
    with pytest.raises(
        check_command.UnknownLabError, match="Unit 20, Hackathon, does not have a lab"
    ):
        check_command.unit_named("20", tmp_path)  # a clone in which no unit is there


def test_collecting_before_releasing_says_what_to_type(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(class_commands, "find_root", lambda: tmp_path)
    lab = tmp_path / "labs" / "90_tiny"
    lab.mkdir(parents=True)
    (lab / "90_tiny.ipynb").write_text("{}")
    (tmp_path / "nbgrader_config.py").write_text((ROOT / "nbgrader_config.py").read_text())
    assert class_commands.collect(["90"]) == 2
    assert "First run: manyhands release 90" in capsys.readouterr().err


def test_a_shell_completes_commands_units_and_options(tmp_path):
    assert completions("manyhands che", tmp_path) == ["check"]
    assert completions("manyhands check 06", tmp_path) == ["06_ddp"]
    assert "--no-sandbox" in completions("manyhands check --", tmp_path)
    assert completions("manyhands accounts ext", tmp_path) == ["extend"]


@pytest.mark.parametrize(
    ("shell", "has"),
    [
        ("bash", "complete "),
        ("zsh", "#compdef manyhands"),
        ("fish", "complete --command manyhands"),
    ],
)
def test_each_shell_gets_its_lines(shell, has, capsys):
    assert cli.main(["completion", shell]) == 0
    assert has in capsys.readouterr().out

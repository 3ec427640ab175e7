"""The texts of the course stay within the limits of `manyhands.authoring.prose`."""

from pathlib import Path

import pytest

from manyhands.authoring import prose

ROOT = Path(__file__).resolve().parents[3]
GROUPS = ("tutorials", "labs", "decks", "docs", "messages")
GOOD = (
    "The ranks wait because one of them is late. However, the report names it, so that you can mend"
    " the cell."
)


@pytest.mark.parametrize("group", GROUPS)
def test_the_texts_read_like_a_textbook(group):
    texts = prose.groups(ROOT)[group]
    measured = prose.figures(texts.values())
    listed = [
        f"{path.relative_to(ROOT)}: ...{around}... -> {instead}"
        for path, text in texts.items()
        for around, instead in prose.hits(text)
    ]
    assert not prose.misses(group, measured), "\n".join(
        [f"{measured}; the limits: {prose.LIMITS}", *listed]
    )


@pytest.fixture
def course(tmp_path, monkeypatch):
    """Writes a course of a README, and runs the command there."""
    monkeypatch.setenv("MANYHANDS_ROOT", str(tmp_path))

    def run(text, *options):
        (tmp_path / "README.md").write_text(text)
        return prose.main(list(options))

    return run


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (GOOD, []),
        ("The ranks wait: one is late; the report names it.", ["colons", "connectives"]),
        (GOOD + " It hangs. Look there. One is late. " * 3, ["short"]),
        (
            GOOD
            + " **Minutes:** 40. **Ranks:** 4.\n\n**References.** P. Goyal et al. 2017: one; two; "
            "three.\n",
            [],
        ),
        (GOOD + " Nobody comes, and the weights are those of one process.", ["habits"]),
        (
            GOOD + "\n\n| a: b | c; d |\n|---|---|\n\n```\nx: int = 1; y: int = 2\n```\n\n[00]: "
            "nobody.html\n",
            [],
        ),
    ],
)
def test_each_figure_is_measured_in_running_prose_only(course, capsys, text, found):
    failed = course(text)
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("docs")]
    assert failed == 1  # the other groups are empty, and have no connectives
    assert [name for name in prose.Figures._fields if name in line] == found and (
        "within the limits" in line
    ) == (not found)


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("It stands in the module.", "is defined"),
        ("The order is that of the ranks.", "repeat the noun"),
        ("They arrive in another order.", "different"),
        ("It has a tape of its own.", "its own tape"),
        ("Nobody waits.", "no rank"),
        ("All gradients are there.", "exists"),
        ("A training is resumed.", "a training run"),
        ("It hangs. Who waits is late.", "anyone who"),
        ("It seldom fails.", "rarely"),
        ("A larger difference is no error.", "is not"),
        ("The lame rank waits.", "slow rank"),
        ("It equals the weights of one process.", "a single process"),
        ("The gradient is twice too long.", "too large"),
        ("It hangs. Why?", "full question"),
    ],
)
def test_a_habit_is_listed_with_its_place_and_what_to_write(course, capsys, text, instead):
    course(text, "--list")
    listed = [
        line for line in capsys.readouterr().out.splitlines() if line.startswith("    README.md: ")
    ]
    assert any(instead in line.partition(" -> ")[2] for line in listed), listed

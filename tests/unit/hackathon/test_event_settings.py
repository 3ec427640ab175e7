"""What people write into event.toml, and what is told of mistakes in it."""

import pytest
from small_event import BEGINS, ENDS, event, refusal

from manyhands.hackathon.event.event_settings import BadEventError, read, write_template


def test_the_template_can_be_read_and_is_never_written_over(tmp_path):
    path = write_template(tmp_path / "autumn")
    settings = read(tmp_path / "autumn")
    assert settings.ends - settings.begins == 6 * 3600 and settings.teams == {
        "Example": ["ann", "ben"]
    }
    assert "slow_links" in settings.challenges
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        write_template(tmp_path / "autumn")
    assert path.read_text() == "mine"


def test_times_and_teams_are_as_written(tmp_path):
    settings = event(tmp_path).settings
    assert (settings.begins, settings.ends, settings.frozen_from) == (BEGINS, ENDS, ENDS - 3600)
    assert settings.team_of("user1") == "team 1" and settings.team_of("nobody") is None


@pytest.mark.parametrize(
    "before, after, said",
    [
        ("an_hour = 6", "an_hour = 0", "an_hour must be a whole number of 1 or more"),
        ("an_hour = 6", "", "missing: ['an_hour']"),
        ("an_hour = 6", "an_hour = 6\nper_day = 3", "not known: ['per_day']"),
        ("2027-01-15T14", "2027-01-14T14", "ends must be later than begins"),
        ("2027-01-15T14:00:00Z", '"noon"', "ends must be a date with a time"),
        ('"best"', '"mean"', "counts must be one of: best, last"),
        ('"slow_links", ', '"slow", ', "challenges must be a list of some of"),
        ('["user1"]', '["user0"]', "'user0' must be a name in quotes, and in one team only"),
        ('"team 1"', '"team\\u0007 1"', "letters that can be printed"),
        ('["user1"]', '"user1"', 'each team must be written as "Name" = ["member"'),
        ("[teams]", "[teams", "cannot be read"),
        ('"Autumn"', "5", "title must be text in quotes"),
        ('"Autumn"', '"\\u001b[31m"', "title must be text in quotes that can be printed"),
        (
            "freeze_min = 60",
            "freeze_min = 100000000000000000000",
            "freeze_min must be a whole number of 0 or more",
        ),
        ("2027-01-15T08", "0001-01-01T08", "begins must be a date with a time"),
    ],
)
def test_mistakes_are_told(tmp_path, before, after, said):
    event(tmp_path)
    path = tmp_path / "event.toml"
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))
    with pytest.raises(BadEventError) as problem:
        read(tmp_path)
    assert said in str(problem.value) and str(path) in str(problem.value)


def test_a_folder_that_is_none_is_told_what_to_do(tmp_path):
    with pytest.raises(BadEventError, match="is missing. `manyhands hack event"):
        read(tmp_path)


@pytest.mark.parametrize(
    "asked, first",
    [
        ("Ring", "The Rings"),
        ("the rings", "The Rings"),
        ("stragler", "The Stragglers"),
        ("Sly " * 10**5, None),
        ("", None),
    ],
)
def test_who_names_no_team_is_told_the_teams_that_there_are_and_the_likely_one_first(
    tmp_path, asked, first
):
    made = event(tmp_path)
    path = tmp_path / "event.toml"
    names = ["Sly", "The Stragglers", "The Rings", *(f"Other {number}" for number in range(9))]
    path.write_text(
        path.read_text().partition("[teams]")[0]
        + "[teams]\n"
        + "\n".join(f'"{name}" = []' for name in names)
    )
    settings = read(tmp_path)
    for message in (
        settings.team_problem(asked),
        refusal(type(made)(tmp_path, made.now).submit, asked, "slow_links", ""),
    ):
        listed = message.partition("The teams are ")[2]
        assert (
            message.startswith(f"There is no team {asked!r}.")
            and listed.count("'") == 10
            and "event.toml" in listed
        )
        assert first is None or listed.startswith(repr(first))
    assert settings.team_problem("Sly") is None

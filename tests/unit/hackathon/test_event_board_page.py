"""The board: that it shows what it should, only that, and needs nothing but itself."""

import csv
import io
import itertools
import json
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
from small_event import BEGINS, ENDS, event, record

from manyhands.hackathon.event import board_files, board_head, board_page, day_replay, score_chart
from manyhands.hackathon.event.event import judge_all

CHALLENGES = {
    "slow_links": SimpleNamespace(title="Slow links", unit="s", baseline=35.5),
    "big_batch": SimpleNamespace(title="Big batch", unit="updates", baseline=250),
}
HOSTILE = '<script>alert(1)</script>"&'


class Seen(HTMLParser):
    """The page's elements and texts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.attributes = [], "", []
        self.feed(text)
        self.text = self.text.replace(board_page.SCRIPT, "")

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attributes]

    def handle_data(self, data):
        self.text += data + " "


@pytest.fixture
def there(tmp_path):
    made = event(tmp_path, an_hour=100)
    scores = iter([20.0, 12.5, None, 4.4, 30.0])
    for team in (0, 1, 2, 1, 0):
        made.now.now_s += 600
        made.submit(f"team {team}", "slow_links", str(made.now.now_s))
    judge_all(
        made,
        lambda submission: record(
            score := next(scores),
            "" if score else f"Rank 1: {HOSTILE}",
            size=12 - submission.number,
        ),
    )
    return made


def shown(there, **options):
    board = board_files.of_event(there, CHALLENGES, **options)
    return board, Seen(board_page.page(board)).text


def test_the_page_has_tables_curves_the_prize_and_who_waits(there):
    there.submit("team 2", "big_batch", "")
    _, text = shown(there)
    table = text[text.index("handed in") :]  # behind the picture
    assert table.index("team 1") < table.index("team 0") < table.index("team 2")
    # the one with 7 does not count
    assert "Simplest:  team 1 , 8 nodes, of those better than the baseline" in text
    assert (
        "Waiting entries: 1" in text
        and "No entry has been judged yet" in text
        and "(baseline: 250 updates)" in text
        and "No judge is running" in text
    )


def test_what_teams_and_entries_say_is_escaped(tmp_path, there):
    path = tmp_path / "event.toml"
    path.write_text(
        path.read_text().replace('"team 0"', json.dumps(HOSTILE)) + f"{json.dumps('=1+1')} = []\n"
    )
    made = type(there)(tmp_path, there.now)
    made.submit(HOSTILE, "slow_links", "")
    made.submit("=1+1", "slow_links", "")
    judge_all(made, lambda submission: record(1.0 + (submission.team == "=1+1")))
    board, text = shown(made)
    seen = Seen(board_page.page(board))
    assert HOSTILE in text and f"Rank 1: {HOSTILE}" in text
    assert seen.tags.count("script") == 1 and not {"src", "href", "onload"} & set(seen.attributes)
    assert "'=1+1" in board_page.as_csv(board)
    assert "url(" not in board_page.page(board) and "://" not in board_page.page(board)


def test_in_the_last_hour_the_board_stands_still_until_it_is_revealed(there):
    there.now.now_s = ENDS - 3599
    there.submit("team 2", "slow_links", "late and good")
    judge_all(there, lambda submission: record(1.0))
    board, text = shown(there)
    assert (
        "Frozen at " in text
        and min(result.score or 99 for result in board.sections[0].results) == 4.4
    )
    assert board.waiting is None and "aiting" not in text and board.until == ENDS - 3600
    board, text = shown(there, reveal=True)
    assert (
        min(result.score or 99 for result in board.sections[0].results) == 1.0
        and "Frozen" not in text
    )


def test_the_big_screen_shows_the_best_only(tmp_path):
    there = event(tmp_path, teams=15)
    for team in range(15):
        there.submit(f"team {team}", "slow_links", "")
    judge_all(there, lambda submission: record(float(submission.number)))
    board, _ = shown(there)
    screen = Seen(board_page.page(board, screen=True))
    assert (
        screen.tags.count("tr") == 1 + board_page.SCREEN[1][0]
        and "is waiting" not in screen.text
        and "No entry has been judged yet:  Big batch" in screen.text
    )
    assert 'class="screen of1"' in board_page.page(board, screen=True)


def test_where_no_entry_has_a_score_the_big_screen_does_not_say_that_none_was_judged(tmp_path):
    there = event(tmp_path)
    there.submit("team 0", "slow_links", "")
    judge_all(there, lambda submission: record(None, "Rank 1 crashes"))
    screen = Seen(board_page.page(shown(there)[0], screen=True)).text
    assert "no entry has a score yet" in screen and "Rank 1" not in screen
    assert screen.count("No entry has been judged yet") == 1  # of the other challenge


def test_the_table_for_a_spreadsheet_has_all_and_marks_those_that_count(there):
    board, _ = shown(there)
    rows = list(csv.DictReader(io.StringIO(board_page.as_csv(board))))
    assert [(row["team"], row["place"], row["score"]) for row in rows] == [
        ("team 0", "2", "20.0"),
        ("team 1", "", "12.5"),
        ("team 2", "", ""),
        ("team 1", "1", "4.4"),
        ("team 0", "", "30.0"),
    ]


def test_the_files_are_written_and_records_kept_beside_older_ones(there, tmp_path):
    board_files.write(shown(there)[0], tmp_path / "board")
    assert sorted(path.name for path in (tmp_path / "board").iterdir()) == [
        "board.csv",
        "board.html",
        "screen.html",
    ]
    board_files.write_records(there.submissions().values(), tmp_path / "records")
    there.again(1)
    there.now.now_s += 1
    judge_all(there, lambda submission: record(7.0))
    board_files.write_records(there.submissions().values(), tmp_path / "records")
    assert sorted(path.name[:4] for path in (tmp_path / "records").iterdir()) == [
        "0001",
        "0001",
        "0002",
        "0003",
        "0004",
        "0005",
    ]


def test_a_board_of_a_folder_with_records(tmp_path):
    for place, (team, score) in enumerate([("ours", 3.0), ("theirs", 2.0)]):
        (tmp_path / team).mkdir()
        (tmp_path / team / "entry.record").write_text(
            record(score, entry=team, judged=f"2027-01-15T1{place}:00:00+00:00")
        )
    read = []
    board = board_files.of_records(
        tmp_path,
        CHALLENGES,
        lambda data: (json.loads(data.split(b"\n%")[0]), read.append(data)),
        BEGINS + 9 * 3600,
    )
    assert [
        result.team for result in board_files.standings.table(board.sections[0].results, "best")
    ] == [
        "theirs",
        "ours",
    ]
    assert len(read) == 2 and [section.name for section in board.sections] == ["slow_links"]


def test_curves_are_steps_inside_the_picture_and_names_do_not_lie_on_each_other():
    teams = [f"team {number}" for number in range(12)]
    ways = {
        team: [(BEGINS + 60 * number, None), (BEGINS + 600, 5.0), (BEGINS + 1200, 3.0)]
        for number, team in enumerate(teams)
    }
    picture = ET.fromstring(score_chart.svg(ways, teams, "s", BEGINS, BEGINS + 3600, baseline=35.5))
    curves = [path for path in picture.iter("path") if path.get("class").startswith("team")]
    assert len(curves) == 12
    numbers = [
        float(number)
        for curve in curves
        for number in curve.get("d").replace("M", "").replace("L", " ").split()
    ]
    assert all(0 <= x <= score_chart.WIDTH for x in numbers[::2]) and all(
        0 <= y <= score_chart.HEIGHT for y in numbers[1::2]
    )
    names = sorted(
        float(text.get("y"))
        for text in picture.iter("text")
        if text.get("class").startswith("team")
    )
    assert (
        len(names) == score_chart.NAMED
        and min(b - a for a, b in itertools.pairwise(names)) >= score_chart.NAME_PX - 0.1
    )
    assert max(names) < score_chart.HEIGHT


def test_a_picture_of_another_size_has_its_names_and_curves_inside_and_names_the_best_only():
    teams = [f"team {number}" for number in range(12)]
    ways = {team: [(BEGINS + 60 * number, 3.0 + number)] for number, team in enumerate(teams)}
    picture = ET.fromstring(
        score_chart.svg(ways, teams, "s", BEGINS, BEGINS + 3600, size=(440, 150), named=3)
    )
    names = [text for text in picture.iter("text") if "team" in text.get("class")]
    assert sorted(name.text for name in names) == teams[:3] and all(
        0 < float(name.get("y")) < 150 for name in names
    )
    assert picture.get("viewBox") == "0 0 440 150"
    for path in picture.iter("path"):
        numbers = [
            float(number) for number in path.get("d").replace("M", "").replace("L", " ").split()
        ]
        assert all(0 <= x <= 440 - score_chart.RIGHT for x in numbers[::2]) and all(
            0 <= y <= 150 for y in numbers[1::2]
        )


def test_a_picture_without_a_score_is_none_and_one_score_is_enough():
    assert score_chart.svg({}, [], "s", BEGINS, BEGINS) == ""
    assert (
        ET.fromstring(score_chart.svg({"a": [(BEGINS, 3.0)]}, ["a"], "s", BEGINS, BEGINS))
        is not None
    )


@pytest.mark.parametrize(
    "least, most, wanted",
    [
        (3, 36, [3, 5, 10, 20, 30]),
        (1, 1, [1]),
        (28, 250, [30, 50, 100, 200]),
        (0.3, 0.4, [0.3, 0.4]),
        (138, 250, [150, 200, 250]),
        (10.229, 15.3, [15]),
        (10.229, 14, [10.229]),
    ],
)
def test_ticks(least, most, wanted):
    assert score_chart.ticks(least, most) == pytest.approx(wanted)


def test_the_challenge_with_the_latest_entry_comes_first_and_the_head_names_it_with_its_gain(there):
    there.now.now_s += 60
    there.submit("team 2", "big_batch", "")
    judge_all(there, lambda submission: record(125.0, unit="updates"))
    for screen in (False, True):
        text = Seen(board_page.page(shown(there)[0], screen)).text
        assert text.index("250 updates") < text.index("35.5 s")
        assert (
            "team 2 , Big batch:  125 updates , a gain of 2.0 × over the baseline" in text
            and "6 entries judged" in text
        )
        assert "8.1 ×" in text and "Ends at " in text and ", freezes at " in text


def test_without_an_event_there_is_no_clock_and_a_strange_score_has_no_gain(tmp_path):
    board = board_page.Board("Records", [], "best", BEGINS, BEGINS, now=BEGINS)
    assert "clock" not in Seen(
        board_page.page(board)
    ).attributes and 'id="clock"' not in board_page.page(board).replace(board_page.SCRIPT, "")
    assert [board_head.gain(score, 35.5) for score in (0, -1.0, 35.5, 1e-3, 1e9)] == [
        "",
        "",
        "1.0 ×",
        "35500 ×",
        "< 0.1 ×",
    ]


def test_the_replay_is_offered_after_the_end_only_and_ends_with_the_table(there):
    assert "Replay" not in Seen(board_page.page(shown(there)[0], screen=True)).text
    there.now.now_s = ENDS
    board, _ = shown(there, reveal=True)
    text = board_page.page(board, screen=True)
    data = text.partition('id="data">')[2].partition("</script>")[0]
    day = json.loads(data)
    assert "Replay the day" in text and day == json.loads(json.dumps(day_replay.day(board, 8)))
    ways = dict(day["sections"][0]["teams"])
    assert [way[-1][1] for way in ways.values()] == [
        row.score
        for row in board_files.standings.table(board.sections[0].results, "best")
        if row.score
    ]


def test_no_name_ends_the_data_of_the_replay(tmp_path, there):
    path = tmp_path / "event.toml"
    path.write_text(path.read_text().replace('"team 0"', json.dumps("</script><b>x</b>")))
    made = type(there)(tmp_path, there.now)
    made.submit("</script><b>x</b>", "slow_links", "x")
    judge_all(made, lambda submission: record(1.0))
    made.now.now_s = ENDS
    text = board_page.page(board_files.of_event(made, CHALLENGES, reveal=True), screen=True)
    data = text.partition('id="data">')[2].partition("</script>")[0]
    assert json.loads(data)["sections"][0]["teams"][0][0] == "</script><b>x</b>" and "<" not in data

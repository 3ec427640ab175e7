"""Records that are signed and malformed.

Each command that reads records names the file and what is wrong, and goes on.
"""

import csv
import io
import json
import os
import random
import socket

import pytest
from small_event import event, record

from manyhands.hackathon import hack_command
from manyhands.hackathon.event import board_page, event_messages
from manyhands.hackathon.event.board_page import Board, Section
from manyhands.hackathon.event.event import judge_all
from manyhands.hackathon.event.standings import Result
from manyhands.hackathon.judge import judging_record as records
from manyhands.shared import signing

RUN = {
    "problem": "",
    "accuracy": 0.9,
    "clock_s": 3.0,
    "updates": 28,
    "gradients": [7, 7],
    "messages": [3, 3],
    "sent_bytes": [9, 9],
    "processor_s": [0.2, 0.2],
    "most_bytes": [],
}
GOOD = {
    "entry": "ours",
    "sha256": "ab" * 32,
    "challenge": "slow_links",
    "problem": "",
    "score": 3.0,
    "unit": "s",
    "size": 200,
    "seeds_of": None,
    "seeds": ["0a" * 16, "0b" * 16],
    "runs": [RUN, RUN],
    "judged": "2027-01-15T10:00:00+00:00",
    "machine": {"system": "Linux", "processors": 2},
    "versions": {"python": "3.11"},
}
TEXT = json.dumps(GOOD)
BAD = {  # what is wrong: (the JSON, what is said)
    **{
        f"no {name}": (
            json.dumps({key: value for key, value in GOOD.items() if key != name}),
            f"`{name}` is missing",
        )
        for name in GOOD
        if name not in records.OPTIONAL
    },
    **{
        f"{name} is {value}": (json.dumps({**GOOD, name: value}), f"`{name}` must be ")
        for name, values in {
            "problem": [None, 5, ["x"], "a\nb", "\x1b[31m", "\u202eabc"],
            "entry": [None, 5, "", "x" * 300, "\x1b]0;x\x07", "\u202eoruen", "\ud800"],
            "challenge": [None, 5, "Slow Links", "../x", "\n"],
            "unit": [None, 5, ["s"], "\x1b[2J", "s" * 50],
            "judged": [
                None,
                5,
                "today",
                "2027-01-15",
                "2027-01-15T10:00:00",
                "9999-12-31T23:59:59-14:00",
            ],
            "score": ["3.0", [3], {}, True, -1, 10**30],
            "sha256": [None, 5, "", "xyz", "AB" * 32],
            "size": ["=1+1", True, -3, 10**30, 1.5],
            "seeds_of": [5, "x", True],
            "seeds": [None, [], "00", [1], ["0"], ["xy"], ["00"] * 21, {"0": "00"}],
            "runs": [None, [], {}, [5], [{"clock_s": "fast"}], [{"gradients": [True]}], [RUN] * 21],
            "machine": [None, [], {"processors": "two"}],
            "versions": [None, [], {"python": 3}],
        }.items()
        for value in values
    },
    "half a letter": (TEXT.replace('"ours"', '"\\ud800"'), "`entry` must be"),
    "infinite": (TEXT.replace('"score": 3.0', '"score": 1e999'), "`score` must be"),
    "Infinity": (TEXT.replace('"score": 3.0', '"score": Infinity'), "Infinity is not a number"),
    "NaN": (TEXT.replace('"score": 3.0', '"score": NaN'), "NaN is not a number"),
    "digits": (TEXT.replace('"size": 200', f'"size": {"9" * 5000}'), "not a record of a judging"),
    "twice": (TEXT[:-1] + ', "score": 1.0}', "appears twice"),
    "deep": ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
    "deep inside": (
        TEXT[:-1] + ', "more": ' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}",
        "nested too deeply",
    ),
    "a list": ("[]", "not a JSON object"),
    "half": (TEXT[:100], "not JSON"),
    "nothing": ("", "not JSON"),
    "no text": (b"\xff\xfe\x00" + TEXT.encode(), "not text in UTF-8"),
    "score and problem": (
        json.dumps({**GOOD, "problem": "crashed"}),
        "either a score or a problem",
    ),
    "neither": (json.dumps({**GOOD, "score": None}), "either a score or a problem"),
    "more runs": (json.dumps({**GOOD, "runs": [RUN] * 3}), "more runs than seeds"),
    "a short sum": (json.dumps({**GOOD, "sha256": "ab"}), "64 hexadecimal digits"),
}


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    signing.new_key(folder / "judge.key"), signing.new_key(folder / "other.key")
    return folder


@pytest.fixture
def hack(tmp_path, monkeypatch, capsys):
    """Type a command in a folder of its own; gives (exit code, all that was printed)."""
    monkeypatch.chdir(tmp_path)

    def typed(*command):
        try:
            code = hack_command.main(list(command))
        except SystemExit as end:
            code = end.code
        output = capsys.readouterr()
        assert (output.out + output.err).encode() and all(
            letter.isprintable() or letter == "\n" for letter in output.out + output.err
        )
        return code, output.out + output.err

    return typed


def signed(keys, text, key="judge.key"):
    return signing.signed(
        (text if isinstance(text, bytes) else text.encode()) + b"\n", signing.load_key(keys / key)
    )


@pytest.mark.parametrize("wrong", BAD)
def test_a_malformed_record_is_named_with_what_is_wrong_in_it(hack, keys, tmp_path, wrong):
    text, reason = BAD[wrong]
    (tmp_path / "bad.record").write_bytes(signed(keys, text))
    code, answer = hack("verify", "bad.record")
    assert (
        code == 1
        and "bad.record is signed, but is not a record of a judging: " in answer
        and reason in answer
        and len(answer) < 400
    )


def fill(folder, keys):
    """A folder with two good records, all bad ones, and what only has a record's name."""
    folder.mkdir()
    for place, (text, _) in enumerate(BAD.values()):
        (folder / f"{place:03d}.record").write_bytes(signed(keys, text))
    for name, score in (("ours", 3.0), ("theirs", 2.0)):
        (folder / f"{name}.record").write_bytes(
            signed(keys, json.dumps({**GOOD, "entry": name, "score": score}))
        )
    (folder / "unsigned.record").write_text(TEXT)
    (folder / "changed.record").write_bytes(signed(keys, TEXT).replace(b"3.0", b"1.0"))
    (folder / "other.record").write_bytes(
        signed(keys, json.dumps({**GOOD, "entry": "forged", "score": 0.1}), "other.key")
    )
    (folder / "later.record").write_bytes(
        signed(keys, json.dumps({**GOOD, "challenge": "of_a_later_version"}))
    )
    (folder / "folder.record").mkdir()
    os.mkfifo(folder / "pipe.record")
    (
        os.symlink("nowhere", folder / "dangling.record"),
        os.symlink("ring.record", folder / "ring.record"),
        os.symlink("/dev/zero", folder / "device.record"),
    )
    (folder / "huge.record").write_bytes(
        signed(keys, TEXT[:-1] + ', "more": "' + "x" * 2**20 + '"}')
    )
    (folder / "\x1b[31mred\u202e.record").write_text("x")
    with open(os.fsencode(folder) + b"/\xff.record", "w") as file:
        file.write("x")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "socket.record"))


@pytest.mark.parametrize("public", [(), ("--public", "judge.key.pub")], ids=["any key", "one key"])
def test_a_board_names_each_malformed_record_and_shows_the_others(hack, keys, tmp_path, public):
    fill(tmp_path / "all", keys)
    code, printed = hack(
        "board",
        "all",
        "-o",
        "out",
        *(str(keys / word) if word.endswith("pub") else word for word in public),
    )
    assert code == 1
    page = (tmp_path / "out" / "board.html").read_text()
    table = page[page.index("<tbody>") :]
    assert table.index(">theirs<") < table.index(">ours<") and (">forged<" in page) == (not public)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "board.csv").read_text())))
    assert len(rows) == (2 if public else 3)
    left_out = [line for line in printed.splitlines() if "is left out" in line]
    assert len(left_out) == len(BAD) + 12 + len(public[:1])
    for name in (
        "unsigned",
        "changed",
        "later",
        "folder",
        "pipe",
        "dangling",
        "ring",
        "device",
        "huge",
        "socket",
        "000",
        "\\x1b[31mred\\u202e",
        "\\udcff",
    ):
        assert any(f"{name}.record " in line or f"{name}.record." in line for line in left_out), (
            name
        )


def test_a_folder_that_does_not_exist_is_not_made(hack, tmp_path):
    code, printed = hack("board", "nowhere")
    assert (
        code == 2 and "nowhere is not a folder" in printed and not (tmp_path / "nowhere").exists()
    )


@pytest.mark.parametrize(
    "wrong", ["seeds is []", "no seeds", "deep", "half a letter", "NaN", "no text"]
)
def test_seeds_of_a_malformed_record_are_refused_before_the_judging(hack, keys, tmp_path, wrong):
    hack("init", "slow_links", "ours")
    (tmp_path / "bad.record").write_bytes(signed(keys, BAD[wrong][0]))
    code, printed = hack(
        "judge", "ours", "--key", str(keys / "judge.key"), "--seeds-of", "bad.record"
    )
    assert (
        code == 1
        and "bad.record is signed, but is not a record" in printed
        and not (tmp_path / "ours.record").exists()
    )


@pytest.mark.parametrize(
    "command", [("verify",), ("judge", "ours", "--seeds-of")], ids=["verify", "seeds"]
)
@pytest.mark.parametrize("kind", ["folder", "pipe", "socket", "ring", "dangling", "x" * 300])
def test_what_only_has_a_records_name_is_a_bad_argument(hack, keys, tmp_path, command, kind):
    fill(tmp_path / "all", keys)
    key = ("--key", str(keys / "judge.key")) if command[0] == "judge" else ()
    code, printed = hack(*command, f"all/{kind}.record", *key)
    assert code == 2 and f"all/{kind}.record" in printed and "Errno" not in printed


def mutated(draw, value, depth=0):
    """The same value, with something different somewhere in it."""
    strange = [
        None,
        True,
        -1,
        0,
        1.5,
        2**70,
        1e308,
        float("nan"),
        "",
        "x" * 5000,
        "\x1b[2J",
        "\ud83d",
        "\u202e",
        [],
        {},
        [[]],
        {"a": {}},
        "=1+1",
        "2027",
        [None],
        "\0",
    ]
    if (depth and draw.random() < 0.4) or not isinstance(value, (list, dict)) or not value:
        return draw.choice(strange)
    if isinstance(value, list):
        place = draw.randrange(len(value))
        return [
            mutated(draw, item, depth + 1) if at == place else item for at, item in enumerate(value)
        ]
    name = draw.choice(sorted(value))
    if draw.random() < 0.2:
        return {key: item for key, item in value.items() if key != name}
    return {
        key: mutated(draw, item, depth + 1) if key == name else item for key, item in value.items()
    }


def test_whatever_is_signed_verify_and_the_board_answer(hack, keys, tmp_path):
    """600 records, each with one to three changes.

    Those that are taken can be shown, and the others are named.
    """
    draw, folder = random.Random(33), tmp_path / "many"
    folder.mkdir()
    for number in range(600):
        content = GOOD
        for _ in range(draw.randint(1, 3)):
            content = mutated(draw, content)
            if not isinstance(content, dict):
                break
        data = json.dumps(content).encode()
        if draw.random() < 0.2:
            at = draw.randrange(len(data))
            data = data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]
        (folder / f"{number:03d}.record").write_bytes(signed(keys, data))
    code, printed = hack("board", "many", "-o", "out")
    left_out = sum("is left out" in line for line in printed.splitlines())
    taken = len(list(csv.DictReader(io.StringIO((tmp_path / "out" / "board.csv").read_text()))))
    assert code == 1 and left_out + taken == 600 and left_out > 400 and taken > 5
    for number in range(0, 600, 20):
        assert hack("verify", f"many/{number:03d}.record")[0] in (0, 1)


def test_a_record_says_where_its_seeds_come_from(hack, keys, tmp_path):
    older = {name: value for name, value in GOOD.items() if name not in records.OPTIONAL}
    for name, content, sentence in (
        ("new", GOOD, "The seeds were drawn anew"),
        (
            "again",
            {**GOOD, "entry": "again", "seeds_of": "cd" * 32},
            "The seeds were taken from an earlier record (cdcdcdcdcdcdcdcd)",
        ),
        ("older", {**older, "lines": 19}, "does not say how its seeds were chosen"),
    ):
        (tmp_path / f"{name}.record").write_bytes(signed(keys, json.dumps(content)))
        code, answer = hack("verify", f"{name}.record")
        assert code == 0 and sentence in answer
    assert hack("board", ".", "-o", "out")[0] == 0
    page = (tmp_path / "out" / "board.html").read_text()
    assert (
        page.count("(judged with the seeds of an earlier record)") == 1
        and "again <small>(judged with" in page
    )
    assert [
        row["seeds of"]
        for row in csv.DictReader(io.StringIO((tmp_path / "out" / "board.csv").read_text()))
    ].count("cd" * 32) == 1


def test_no_cell_of_the_table_is_a_formula():
    row = Result("=1+1", "+x", 1, 1.8e9, 2.0, "@s", "-1; =2", 5, "=3", "\uff1d4")
    cells = next(
        csv.reader(
            io.StringIO(
                board_page.as_csv(
                    Board("x", [Section("=t", "s", 3.0, [row], "-n")], "best", 1.8e9, 1.8e9)
                ).splitlines()[1]
            )
        )
    )
    assert [cells[place] for place in (0, 2, 4, 8, 9, 10)] == [
        "'-n",
        "'=1+1",
        "'@s",
        "'-1;' =2",
        "'=3",
        "'\uff1d4",
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        "score is 3.0",
        "score is [3]",
        "score is True",
        "half a letter",
        "infinite",
        "NaN",
        "deep",
        "a list",
        "half",
        "problem is \x1b[31m",
        "unit is 5",
    ],
)
def test_a_malformed_record_in_an_events_log_stops_nothing(tmp_path, wrong):
    there = event(tmp_path, an_hour=100)
    for team in (0, 1):
        there.submit(f"team {team}", "slow_links", str(team))
    bad = BAD[wrong][0] + "\n%manyhands-signature none\n"
    judge_all(there, lambda submission: bad if submission.team == "team 0" else record(2.0))
    made = type(there)(tmp_path, there.now)
    assert "cannot" in event_messages.status(
        made, "team 0"
    ) or "is not a record" in event_messages.status(made, "team 0")
    assert event_messages.status(made, "team 1").endswith(": 2 s")


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        "5",
        "[]",
        "{}",
        '{"do": "take"}',
        '{"do": []}',
        '{"do": "take", "number": 77, "at": 5}',
        '{"do": "take", "number": true, "at": 5}',
        '{"do": "take", "number": 1, "at": NaN}',
        '{"do": "take", "number": 1, "at": "now"}',
        '{"do": "judged", "number": 1, "at": 5, "record": 7}',
        '{"do": "judged", "number": 1, "at": 5, "record": "\\ud800"}',
        '{"do": "dance", "number": 1, "at": 5}',
        '{"do": "submit", "number": 3, "at": 5}',
        (
            '{"do": "submit", "number": 3, "at": 5, "team": 5, "challenge": "x", "sha256": "", '
            '"source": "", "round": 0}'
        ),
        (
            '{"do": "submit", "number": 3, "at": 5, "team": "team 0", "challenge": "slow_links", '
            '"sha256": "", "source": "", "round": 0, "taken": 5}'
        ),
        b"\xff\xfe{}",
    ],
    ids=range(17),
)
def test_a_malformed_line_in_an_events_log_stops_nothing(tmp_path, line):
    there = event(tmp_path)
    there.submit("team 0", "slow_links", "x")
    with open(tmp_path / "event.jsonl", "ab") as file:
        file.write((line if isinstance(line, bytes) else line.encode()) + b"\n")
    made = type(there)(tmp_path, there.now)
    made.submit("team 1", "slow_links", "y")
    judge_all(made, lambda submission: record(2.0))
    assert (
        event_messages.status(made, "team 0") == "Entry 1, slow_links: 2 s"
        and event_messages.status(made, "team 1") == "Entry 2, slow_links: 2 s"
    )

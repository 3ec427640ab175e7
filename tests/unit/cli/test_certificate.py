"""`manyhands certificate`: who gets one, and what a signature covers.

The same points give the same file.
"""

import json
import subprocess
import sys
from base64 import b64encode
from types import SimpleNamespace

import pytest

from manyhands.checks import progress
from manyhands.cli import certificate
from manyhands.learner import certificate_paper
from manyhands.learner.certificate_paper import NoCertificateError
from manyhands.shared import signing

UNITS = [
    SimpleNamespace(name="00_preflight", number="00", title="Preflight", planned=False),
    SimpleNamespace(name="06_ddp", number="06", title="DistributedDataParallel", planned=False),
]
GRADES = {
    "00_preflight": {"points": 9, "max": 9, "when": "2026-11-24T10:00:00+00:00"},
    "06_ddp": {"points": 5.5, "max": 8, "when": "2026-11-25T10:00:00+00:00", "hints": []},
}


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone in which 00 and 06 are there, and we stand in a folder of our own."""
    for unit in UNITS:
        for path in (f"notebooks/{unit.name}.ipynb", f"labs/{unit.name}/{unit.name}.ipynb"):
            (tmp_path / "clone" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "clone" / path).write_text("{}")
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")
    monkeypatch.setenv("MANYHANDS_ROOT", str(tmp_path / "clone"))
    return tmp_path / "clone"


def graded(clone, grades=GRADES):
    path = progress.path_in(clone / "work")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(grades))


def made(**changes):
    return certificate_paper.make_certificate(
        **{"name": "Ada Lovelace", "path": "one_day", "units": UNITS, "grades": GRADES, **changes}
    )


def test_it_says_name_units_points_and_the_day_of_the_last_grade():
    paper = made(name="  Ada \n Lovelace ")
    assert (
        paper.name,
        paper.points,
        paper.max,
        paper.day,
    ) == ("Ada Lovelace", 14.5, 17, "2026-11-25")
    assert paper.units[1] == ("06", "DistributedDataParallel", 5.5, 8)


@pytest.mark.parametrize(
    "grade",
    [
        None,
        {},
        {"hints": ["06-average"]},
        {"seen": ["average"]},
        {"points": 5, "max": 8},
        {"points": 9, "max": 8, "when": "2026-11-25"},
        7,
        {"points": "8", "max": 8, "when": "2026-11-25"},
        {"points": -1, "max": 8, "when": "2026-11-25"},
        {"points": 0, "max": 0, "when": "2026-11-25"},
        {"points": 8, "max": 8, "when": "yesterday"},
        {"points": 8, "max": 8, "when": None},
    ],
)
def test_points_that_were_never_graded_are_refused(grade):
    with pytest.raises(
        NoCertificateError,
        match="never graded are not certified. Not graded: 06 DistributedDataParallel",
    ):
        made(grades={**GRADES, "06_ddp": grade})


@pytest.mark.parametrize("name", ["", " \n", "x" * 61, "Ada\x00"])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(NoCertificateError, match="--name"):
        made(name=name)


def test_the_same_points_give_the_same_bytes_in_another_process_too(tmp_path):
    first = certificate_paper.render_pdf(made(name="Ada 山田"))
    assert first.startswith(b"%PDF-") and certificate_paper.brief_of(first)["name"] == "Ada 山田"
    assert len(first) - first.rindex(b"%%EOF") < 1024, "where readers of PDF look for it"
    program = (
        "import sys, time; time.sleep(1.1); from manyhands.learner import certificate_paper as "
        "paper; sys.stdout.buffer.write(paper.render_pdf(paper.Certificate('Ada 山田', 'one_day', "
        f"{made().units!r}, '2026-11-25')))"
    )
    again = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
    assert again == first and certificate_paper.render_pdf(made(name="Eve")) != first


@pytest.fixture
def key(tmp_path):
    return signing.load_key(signing.new_key(tmp_path / "instructor.key")[0])


def test_a_signature_covers_every_byte(key):
    data = signing.signed(certificate_paper.render_pdf(made(by_instructor=True)), key)
    before, public = signing.verified(data)
    assert public == key.public_key().public_bytes_raw() and data.startswith(before)
    for place in (
        0,
        100,
        len(data) // 2,
        len(before) - 10,
        len(before) + 30,
        len(data) - 10,
        len(data) - 1,
    ):
        broken = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        with pytest.raises(signing.BadSignatureError):
            signing.verified(broken)
    for other in (
        data + b"\n",
        data + b"more",
        data[:-1],
        data.replace(b"\n%manyhands-signature", b"\n\n%manyhands-signature"),
        before,
        b"",
        b"x",
    ):
        with pytest.raises(signing.BadSignatureError):
            signing.verified(other)


def test_a_line_of_another_certificate_does_not_sign_this_one(key):
    first, other = (certificate_paper.render_pdf(made(name=name)) for name in ("Ada", "Eve"))
    line = signing.signed(first, key)[len(first) :]
    with pytest.raises(signing.BadSignatureError, match="was changed"):
        signing.verified(other + line)
    with pytest.raises(signing.BadSignatureError, match="was changed"):
        signing.verified(signing.signed(first, key) + b"page of mine\n" + line)


def test_a_key_is_for_its_owner_alone_and_never_overwritten(tmp_path):
    private, public = signing.new_key(tmp_path / "a.key")
    assert private.stat().st_mode & 0o777 == 0o600 and len(signing.load_public(public)) == 32
    before = private.read_bytes()
    for taken in ("a.key", "a.key.pub"):
        with pytest.raises(FileExistsError):
            signing.new_key(tmp_path / taken.removesuffix(".pub"))
    assert private.read_bytes() == before
    with pytest.raises(signing.BadKeyError, match="not a private key"):
        signing.load_key(public)
    with pytest.raises(signing.BadKeyError, match="ends with .pub"):
        signing.load_public(private)


def test_a_learners_way(clone, capsys):
    assert certificate.main(["--name", "Ada"]) == 1
    assert (
        "Not graded: 00 Preflight: your cluster, 06 DistributedDataParallel. Grade them: manyhands "
        "check 00 06" in capsys.readouterr().err
    )
    graded(clone)
    assert certificate.main(["--name", "Ada"]) == 0
    assert (
        "certificate.pdf: Ada, path One day, 2 units, 14.5 of 17 points, 2026-11-25"
        in capsys.readouterr().out
    )
    assert (
        certificate.main(["--name", "Ada"]) == 2
        and "nothing is overwritten" in capsys.readouterr().err
    )
    assert certificate.main(["--verify", "certificate.pdf"]) == 1
    assert (
        "certificate.pdf is not signed, so anyone could have written it." in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--verify", "nosuch.pdf"], "nosuch.pdf"),
        (["--attendee", "hand01"], "must be used together"),
        (["--key", "k"], "must be used together"),
        (["--attendee", "hand01", "--key", "nosuch.key"], "nosuch.key"),
    ],
)
def test_wrong_usage_is_told(clone, capsys, arguments, says):
    assert certificate.main(arguments) == 2
    assert says in capsys.readouterr().err


def test_an_instructors_way(clone, capsys, monkeypatch):
    monkeypatch.setattr(
        certificate,
        "_class_grades",
        lambda root, attendee, chosen: GRADES if attendee == "hand01" else {},
    )
    assert (
        certificate.main(["--new-key", "k"]) == 0 and certificate.main(["--new-key", "other"]) == 0
    )
    assert certificate.main(["--attendee", "nobody", "--key", "k"]) == 1
    assert "manyhands grade 00 06" in capsys.readouterr().err
    assert (
        certificate.main(["--attendee", "hand01", "--name", "Ada", "--key", "k", "-o", "ada.pdf"])
        == 0
    )
    assert certificate.main(["--verify", "ada.pdf"]) == 0
    output = capsys.readouterr().out
    assert (
        "ada.pdf: signed, and unchanged since.\nAda, path One day, 2 units, 14.5 of 17 points, "
        "2026-11-25\nThe key: "
        in output
        and "Compare the key" in output
    )
    assert (
        certificate.main(["--verify", "ada.pdf", "--public", "k.pub"]) == 0
        and "Compare" not in capsys.readouterr().out
    )
    assert (
        certificate.main(["--verify", "ada.pdf", "--public", "other.pub"]) == 1
        and "signed with a different key" in capsys.readouterr().err
    )


def test_what_is_signed_but_no_certificate_is_refused(clone, key, capsys):
    (clone / "x").write_bytes(signing.signed(b"hello\n", key))
    (clone / "y").write_bytes(signing.signed(certificate_paper.MARK + b64encode(b"[") + b"\n", key))
    for name in ("x", "y"):
        assert certificate.main(["--verify", str(clone / name)]) == 1
        assert "is no certificate of this course" in capsys.readouterr().err

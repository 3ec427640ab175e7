"""What a learner's code can see and do inside the sandbox."""

import json
import os
import socket
from pathlib import Path

import pytest

from manyhands.isolation import bubblewrap
from manyhands.isolation.kernel import Kernel
from sandboxed import CAN

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("works_in_sandbox")]


@pytest.fixture
def ask(tmp_path):
    """Run an expression's code inside and get its value."""
    (tmp_path / "mine.txt").write_text("mine")
    with Kernel(tmp_path, 5, sandboxed=True) as kernel:

        def ask(code):
            ran = kernel.run(f"import json, os, pathlib\n{code}\nprint(json.dumps(answer))")
            assert not ran.error, ran.error
            return json.loads("".join(output["text"] for output in ran.outputs))

        yield ask


def test_only_the_environment_and_the_submission_are_there(ask, tmp_path, lab):
    root = Path(__file__).resolve().parents[2]
    hidden = [
        lab.solution,
        root / "pyproject.toml",
        root / "tests",
        root / "solutions",
        tmp_path,
        Path("/etc/shadow"),
        Path(os.environ["XDG_CACHE_HOME"]),
        Path("/run"),
        Path("/var"),
        Path("/sys"),
    ]
    assert (
        ask(f"answer = [p for p in {[str(path) for path in hidden]!r} if os.path.exists(p)]") == []
    )
    # Python itself may stand in somebody's home; what is beside it must not be there
    shown = bubblewrap.read_only_folders()
    code = (
        f"answer = [str(p) for p in pathlib.Path({str(Path.home())!r}).glob('**/*') if not "
        f"str(p).startswith({tuple(shown)!r})]"
    )
    assert [
        path for path in ask(code) if not any(place.startswith(path + "/") for place in shown)
    ] == []
    assert ask("answer = sorted(os.listdir())") == ["mine.txt"]
    assert ask("import manyhands.checks; answer = manyhands.checks.seed()") == 5


def test_environment_tells_nothing_personal(ask, monkeypatch):
    names = ask("answer = sorted(os.environ)")
    assert not [
        name
        for name in names
        if "TOKEN" in name or "SECRET" in name or name.startswith(("AWS", "SSH", "PIP", "XDG"))
    ]
    assert (
        bubblewrap.environment({"API_TOKEN": "x", "MANYHANDS_SEED": "1"}).get("API_TOKEN") is None
    )


def test_no_network_but_an_own_loopback(ask):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = """
import socket
def reached(host, port):
    try:
        socket.create_connection((host, port), timeout=2).close()
        return True
    except OSError:
        return False
server = socket.create_server(("127.0.0.1", 0))
"""
        assert ask(code + f"answer = reached('127.0.0.1', {port})") is False
    assert ask(code + "answer = reached('127.0.0.1', server.getsockname()[1])") is True
    assert ask("answer = [name for _, name in socket.if_nameindex()]") == ["lo"]
    assert ask("answer = socket.gethostbyname(socket.gethostname())") == "127.0.0.1"


def test_no_processes_but_its_own(ask):
    assert (
        ask(
            f"answer = os.path.exists('/proc/{os.getpid()}/environ') and 'pytest' in "
            f"open('/proc/{os.getpid()}/cmdline').read()"
        )
        is False
    )
    assert ask("answer = sorted(int(p) for p in os.listdir('/proc') if p.isdigit())")[0] == 1


def test_nothing_outside_can_be_written(ask):
    places = ["/usr/x", "/x", "/etc/x", os.path.join(os.path.dirname(bubblewrap.__file__), "x")]
    assert ask(CAN + f"answer = [place for place in {places!r} if can(place)]") == []
    assert (
        ask(CAN + "answer = can('mine.txt') and can('/tmp/x') and can(os.path.expanduser('~/x'))")
        is True
    )


def test_no_rights_over_the_machine(ask):
    assert (
        ask(
            "answer = [line.split()[1] for line in open('/proc/self/status') if "
            "line.startswith(('CapEff', 'CapPrm'))]"
        )
        == ["0" * 16] * 2
    )


def test_copy_of_the_submission_is_thrown_away(ask, tmp_path):
    assert (
        ask(
            "pathlib.Path('mine.txt').write_text('theirs'); answer = "
            "pathlib.Path('mine.txt').read_text()"
        )
        == "theirs"
    )
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_the_packages_of_a_site_are_there_without_what_is_next_to_them(tmp_path, monkeypatch):
    packages, secret, mine = (
        tmp_path / "site/lib/site-packages",
        tmp_path / "site/lib/secret",
        tmp_path / "mine",
    )
    for folder in (packages, mine):
        folder.mkdir(parents=True)
    (packages / "of_the_site.py").touch()
    secret.touch()
    monkeypatch.syspath_prepend(str(packages))
    with Kernel(mine, 5, sandboxed=True) as kernel:
        ran = kernel.run(
            f"import os\nprint(os.path.exists({str(packages / 'of_the_site.py')!r}), "
            f"os.path.exists({str(secret)!r}))"
        )
    assert not ran.error and "".join(output["text"] for output in ran.outputs).split() == [
        "True",
        "False",
    ]

"""`manyhands hub`: a JupyterHub on this machine, with the accounts of `manyhands accounts`."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.command_line import completed, printable, working
from manyhands.hub import course, hub_address, hub_options
from manyhands.hub.folder import LOCK, SOLUTIONS, hub_folder, is_classroom
from manyhands.hub.hub_options import CannotStartError, WrongUsageError, parser
from manyhands.hub.jupyterhub_settings import START_LIMIT_S, VARIABLE, Settings
from manyhands.hub.servers import limits, sandbox
from manyhands.hub.services import proxy
from manyhands.units import NotACloneError, find_root

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from types import ModuleType
    from typing import IO, TextIO

    from manyhands.command_line import Line


DEMONSTRATION = (
    "DEMONSTRATION for one trusted person: without root, nothing keeps one user of this hub from "
    "the files of another. Run it as root for a class."
)
CLASSROOM = (
    "A classroom: each attendee has a separate user number and a closed room, with limits by "
    "{limits}."
)
CONTAINERS = (
    "A classroom: each attendee has a separate user number and a container of the image {image}, "
    "with limits by the engine of containers."
)
CLUSTER = """A class on a Slurm cluster: each attendee's server is a job of the cluster's user with the account's name.
Only UNIX accounts and Slurm keep attendees apart (see "On a Slurm cluster" in docs/HUB.md)."""
NOT_ROOT = (
    "With --image or --slurm, attendees' servers run under different user numbers, so start the hub"
    " as root."
)
NO_JOBS = "{why}\nThe hub does not start."
NO_SANDBOX = (
    "{why}\nWithout rooms, attendees could read each other's files and the solutions, so the hub "
    "does not start."
)
BEFORE = "Papers that were printed before name a different address: {before}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run `manyhands hub` with these arguments; returns the exit status."""
    options = completed(parser()).parse_args(argv)
    try:
        hub_options.check(options)
        root, folder = find_root(), hub_folder(options.home)
        hub_options.check_folder(folder)
        print(_walls(root, options), flush=True)
        hub_options.make_folder(folder)
        with open(folder / LOCK, "a+", encoding="utf-8") as lock:
            _only_one(lock, folder)
            return _serve(root, folder, _settings(root, folder, options), options.address)
    except (CannotStartError, NotACloneError, proxy.NoProxyError, OSError) as problem:
        print(f"manyhands hub: {printable(problem)}", file=sys.stderr)
        return 2 if isinstance(problem, WrongUsageError) else 1


def _walls(root: Path, options: argparse.Namespace) -> str:
    """The first line: what keeps attendees apart. Raises CannotStartError where nothing can."""
    image, jobs = options.image, options.slurm
    if not is_classroom():
        if image or jobs:
            raise CannotStartError(NOT_ROOT)
        return DEMONSTRATION
    if why := (
        _slurm().why_none(root)
        if jobs
        else _containers().why_none(image)
        if image
        else sandbox.why_none()
    ):
        raise CannotStartError((NO_JOBS if jobs else NO_SANDBOX).format(why=why))
    return (
        CLUSTER
        if jobs
        else CONTAINERS.format(image=image)
        if image
        else CLASSROOM.format(limits=limits.way().name)
    )


def _containers() -> ModuleType:
    try:
        from manyhands.hub.servers import docker
    except ImportError as missing:
        raise CannotStartError(
            f"{missing.name} is missing, with which the hub starts containers: pip install "
            "dockerspawner"
        ) from None
    return docker


def _slurm() -> ModuleType:
    try:
        from manyhands.hub.servers import slurm
    except ImportError as missing:
        raise CannotStartError(
            f"{missing.name} is missing, with which the hub starts jobs: make setup"
        ) from None
    return slurm


def _remove_servers(settings: Settings) -> None:
    """End what an earlier hub in the same folder has left.

    Jobs and containers do not end with the process that started them.
    """
    if settings.kind != "sandboxes":
        (_slurm() if settings.kind == "slurm" else _containers()).remove(settings.folder)


def _only_one(lock: TextIO, folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CannotStartError(
            f"A hub is already running in {folder}. Stop it first, or name another folder with "
            "--home."
        ) from None


def _settings(root: Path, folder: Path, options: argparse.Namespace) -> Settings:
    hub_port, proxy_port, formgrader_port, board_port = hub_address.free_ports(4)
    return Settings(
        root=str(root),
        formgrader_port=formgrader_port,
        folder=str(folder),
        ip=options.ip,
        port=hub_address.port_of(folder, options.port),
        servers_port=hub_address.port_of(folder, options.servers_port, "servers_port"),
        hub_port=hub_port,
        proxy_port=proxy_port,
        board_port=board_port,
        address=options.address or "",
        servers_address=options.servers_address,
        behind=options.behind,
        title=options.title,
        proxy=proxy.command(os.environ.get("MANYHANDS_PROXY") or root / ".manyhands"),
        exchange=_exchange(root),
        idle_s=options.idle * 60,
        tidy_up_s=options.tidy_up * 60,
        places=max(1, options.places),
        certificate=options.certificate,
        key=options.key,
        limits=limits.Limits(options.cpus, options.memory, options.processes, options.disk),
        image=options.image,
        gpus=options.gpus,
        hub_name=options.hub_name if options.slurm else "",
    )


def _exchange(root: Path) -> str:
    """The folder through which labs are fetched and handed in.

    It is made here, because a sandbox shows only what is there when it is opened.
    """
    from manyhands.grading.nbgrader import exchange
    from manyhands.grading.nbgrader.class_settings import Classroom
    from manyhands.grading.store.paths import exchange_of

    Classroom(root).made()
    exchange.make(exchange_of(root))
    return exchange_of(root)


def _serve(root: Path, folder: Path, settings: Settings, named: str | None) -> int:
    course.make(root, folder / "course")
    course.make_solutions(root, folder / SOLUTIONS)
    scheme = "https" if settings.certificate else "http"
    address = named or f"{scheme}://{hub_address.shown(settings.ip)}:{settings.port}/"
    before = hub_address.note(folder, address)
    with open(
        os.open(folder / "hub.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab"
    ) as log:
        _remove_servers(settings)
        _mark(folder, settings)
        hub = _start(folder, settings, log)
        # else made elsewhere
        references = (
            course.start_references(root, folder / "course", log)
            if is_classroom() and find_spec("ipyparallel")
            else None
        )
        stop = _Stop(hub)
        try:
            with working("The hub is starting") as line:
                answers = _answers(hub, settings, line)
            if not answers:
                raise CannotStartError(
                    "The hub did not start. The end of its log, "
                    f"{folder / 'hub.log'}:\n\n{_tail(folder / 'hub.log')}"
                )
            print(
                _welcome(
                    address,
                    settings,
                    "import people.csv" if settings.kind == "slurm" else "create 40",
                ),
                flush=True,
            )
            print(
                BEFORE.format(before=before) if before else "",
                end="\n" if before else "",
                flush=True,
            )
            status = hub.wait()
        finally:
            for process in filter(None, (references, hub)):
                _end(process)
    if status and not stop.asked:
        raise CannotStartError(
            f"The hub ended with status {status}. The end of its log, "
            f"{folder / 'hub.log'}:\n\n{_tail(folder / 'hub.log')}"
        )
    print("Stopped.")
    return 0


def _mark(folder: Path, settings: Settings) -> None:
    """For who collects: whose numbers handed in work carries."""
    from manyhands.grading.store.paths import OF_THE_MACHINE

    mark = folder / OF_THE_MACHINE
    mark.touch() if settings.kind == "slurm" else mark.unlink(missing_ok=True)


def _start(folder: Path, settings: Settings, log: IO[bytes]) -> subprocess.Popen[bytes]:
    from manyhands.learner.jupyter_server import end_with_parent

    def in_child() -> None:
        end_with_parent()
        # JupyterHub ends its services with it; a shell may have made us ignore it
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    command = [
        sys.executable,
        "-P",
        "-m",
        "jupyterhub",
        "--config",
        str(Path(__file__).with_name("jupyterhub_config.py")),
    ]
    return subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        preexec_fn=in_child,
        umask=0o077,
        env=os.environ | {VARIABLE: settings.as_text()},
    )


def _answers(hub: subprocess.Popen[bytes], settings: Settings, line: Line) -> bool:
    """Wait until the hub can be reached where attendees look for it.

    Its proxy leads to it once the services have started. `line` says how long that takes.
    """
    import ssl
    from http.client import HTTPException  # something else than a hub may have taken the port
    from urllib.request import HTTPSHandler, ProxyHandler, build_opener

    # it is our own machine, under another name
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=ssl._create_unverified_context()))
    ip = "127.0.0.1" if settings.ip == "0.0.0.0" else settings.ip
    hub_itself, through_proxy = (
        f"http://127.0.0.1:{settings.hub_port}",
        f"{'https' if settings.certificate else 'http'}://{ip}:{settings.port}",
    )
    begun = time.monotonic()
    while hub.poll() is None and (took := time.monotonic() - begun) < START_LIMIT_S:
        line.show(f"The hub is starting: {took:.0f} s")
        with (
            suppress(OSError, HTTPException),
            opener.open(hub_itself + "/hub/health", timeout=5),
            opener.open(through_proxy + "/hub/health", timeout=5),
        ):
            return True
        time.sleep(0.5)
    return False


class _Stop:
    """Ctrl-C and its like end the hub, which ends its servers first."""

    def __init__(self, hub: subprocess.Popen[bytes]) -> None:
        self.hub, self.asked = hub, False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self)

    def __call__(self, *_: object) -> None:
        if not self.asked:
            self.asked = True
            print("\nStopping the hub and every server ...", flush=True)
            self.hub.terminate()


def _end(process: subprocess.Popen[bytes], timeout_s: float = 60) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _welcome(address: str, settings: Settings, accounts: str) -> str:
    folder, servers = (
        Path(settings.folder),
        settings.servers_address or f"port {settings.servers_port}",
    )
    return (
        f"\nThe hub is open at\n\n    {address}\n\nand shows people's servers at {servers}. "
        "Browsers must be able to reach both addresses.\n\nAccounts: manyhands accounts "
        f"{accounts} --expires 3d\nLog: {folder / 'hub.log'}; log-ins and accounts: "
        f"{folder / 'log.jsonl'}\nPress Ctrl-C to stop it and every server."
    )


def _tail(path: Path, lines: int = 20) -> str:
    with suppress(OSError):
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    return ""

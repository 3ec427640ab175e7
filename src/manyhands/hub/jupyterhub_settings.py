"""JupyterHub's settings, made from those of `manyhands hub`. Loaded by `jupyterhub_config.py`."""

from __future__ import annotations

import html
import json
import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.hub.accounts.table import ASSISTANT, INSTRUCTOR
from manyhands.hub.folder import PLACES, WITH_PARENT, sockets
from manyhands.hub.servers.limits import Limits

if TYPE_CHECKING:
    from typing import Any


VARIABLE = "MANYHANDS_HUB_SETTINGS"  # how they reach the hub's process
SHUT_DOWN_GRACE_S = 10
START_LIMIT_S = 180  # on a busy machine; JupyterHub gives a service 30 s, then ends itself
RESTART_S = 2  # JupyterHub looks this often whether a service still runs, instead of every 30 s
WAIT_LIMIT_S = 900  # for a server, with the time that it waits for its turn
SPAWNERS = {
    "sandboxes": "spawner.SandboxSpawner",
    "containers": "docker.ContainerSpawner",
    "slurm": "slurm.SlurmJobSpawner",
}
# to formgrader, which grades
PASSED_ON = (
    "HOME",
    "XDG_CACHE_HOME",
    "MANYHANDS_CLASSROOM",
    "MANYHANDS_IMAGE",
    "DOCKER_HOST",
    "TMPDIR",
)
# that of the web site
LOGO = Path(__file__).parents[1] / "website" / "settings" / "static" / "hands.svg"
PAGES = Path(__file__).with_name("pages")  # templates that take the place of JupyterHub's
WELCOME = (
    "{title}Your name and password are on your slip. Capitals, spaces and hyphens in the password "
    "make no difference."
)
NOTICE = "An unused server is stopped after {minutes} minutes, but its files are kept."


@dataclass(frozen=True)
class Settings:
    """All that `manyhands hub` decides; paths as texts."""

    root: str
    folder: str
    ip: str
    port: int
    servers_port: int  # where people's servers are shown: another origin than the hub's
    hub_port: int
    proxy_port: int
    formgrader_port: int
    proxy: list[str]
    board_port: int
    # what people type for the hub; and how browsers reach the servers, where the two have not one
    # name and these ports
    address: str = ""
    servers_address: str = ""
    behind: list[str] = field(default_factory=list)  # addresses of proxies in front of ours
    exchange: str = ""
    title: str = ""  # of the course or workshop, on the log-in page
    idle_s: int = 3600
    tidy_up_s: int = 600
    places: int = 1
    certificate: str = ""
    key: str = ""
    limits: Limits = field(default_factory=Limits)
    image: str = ""  # of the containers in which attendees' servers run; "": in sandboxes
    gpus: int = 0
    # of this machine, as the nodes of a Slurm cluster reach it; "": servers run here
    hub_name: str = ""

    @property
    def kind(self) -> str:
        """Of attendees' servers: a key of SPAWNERS."""
        return "slurm" if self.hub_name else "containers" if self.image else "sandboxes"

    def as_text(self) -> str:
        """The settings as JSON, for the environment of the hub's process."""
        return json.dumps(asdict(self))


def from_text(text: str) -> Settings:
    """Read what `Settings.as_text` wrote."""
    values = json.loads(text)
    return Settings(**{**values, "limits": Limits(**values["limits"])})


def configure(c: Any, settings: Settings) -> None:
    """Put them into JupyterHub's configuration object `c`."""
    from manyhands.hub.accounts.authenticator import TrialAuthenticator
    from manyhands.hub.servers import limits
    from manyhands.hub.servers.spawner import KEPT

    folder = Path(settings.folder)
    hub = c.JupyterHub
    hub.bind_url = f"{'https' if settings.certificate else 'http'}://{settings.ip}:{settings.port}"
    hub.ssl_cert, hub.ssl_key = settings.certificate, settings.key
    hub.hub_ip, hub.hub_port = "0.0.0.0" if settings.hub_name else "127.0.0.1", settings.hub_port
    c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{settings.proxy_port}"
    c.ConfigurableHTTPProxy.command = [*WITH_PARENT, *settings.proxy, "--doors", _doors(settings)]
    hub.trusted_downstream_ips = settings.behind
    c.ConfigurableHTTPProxy.pid_file = str(folder / "run" / "proxy.pid")
    hub.db_url = f"sqlite:///{folder / 'jupyterhub.sqlite'}"
    hub.cookie_secret_file = str(folder / "cookie_secret")
    hub.log_level = "INFO"
    hub.authenticator_class, hub.spawner_class = (
        TrialAuthenticator,
        f"manyhands.hub.servers.{SPAWNERS[settings.kind]}",
    )
    hub.cleanup_servers = hub.cleanup_proxy = True
    # who comes with many others waits for a turn (InTurn.start) and is not sent away
    hub.concurrent_spawn_limit = 0
    hub.logo_file = str(LOGO)
    title = f"<strong>{html.escape(settings.title)}</strong><br>" if settings.title else ""
    hub.template_paths = [str(PAGES)]
    hub.template_vars = {
        "announcement_login": WELCOME.format(title=title),
        "course_title": settings.title,
        "announcement_home": NOTICE.format(minutes=settings.idle_s // 60),
        # JupyterHub calls the first for each page
        "expected": lambda _: lambda: _attendees(folder),
    }
    c.TrialAuthenticator.folder = settings.folder
    c.TrialAuthenticator.allow_all = True  # whoever has an account
    c.TrialAuthenticator.manage_groups = True
    c.TrialAuthenticator.auth_refresh_age = 2
    spawner = c.InTurn
    spawner.folder, spawner.exchange, spawner.idle_s = (
        settings.folder,
        settings.exchange,
        settings.idle_s,
    )
    spawner.limits, spawner.env_keep = settings.limits, KEPT
    spawner.mem_limit = settings.limits.memory_bytes  # told to the server, which shows it
    spawner.disable_user_config = True
    spawner.start_timeout, spawner.http_timeout = WAIT_LIMIT_S, START_LIMIT_S
    if settings.kind == "slurm":
        from manyhands.hub.servers.slurm import kept

        hub.hub_connect_ip = settings.hub_name
        c.SlurmJobSpawner.env_keep = kept(os.environ)
    elif settings.kind == "containers":
        c.DockerSpawner.image, c.DockerSpawner.pull_policy = settings.image, "never"
        c.ContainerSpawner.gpus = settings.gpus
    else:
        processes = c.SandboxSpawner
        processes.limiting, processes.interrupt_timeout, processes.term_timeout = (
            limits.way(),
            SHUT_DOWN_GRACE_S,
            SHUT_DOWN_GRACE_S,
        )
    _roles(hub)
    _services(hub, settings)


def _attendees(folder: Path) -> list[tuple[str, str]]:
    """[(name, full name)] of the attendees whose accounts are open.

    This is for the page that says who works now, because JupyterHub itself knows only those who
    have logged in.
    """
    from manyhands.hub.accounts.table import ATTENDEE, Accounts

    return [
        (account.name, account.full_name)
        for account in Accounts(folder).load().values()
        if account.role == ATTENDEE and account.state == "open"
    ]


def _doors(settings: Settings) -> str:
    """What the proxy must know of its two doors.

    Where they are named, both are; else they have the name by which a browser has asked.
    """
    names = (
        {"hub": settings.address, "servers": settings.servers_address}
        if settings.servers_address
        else {}
    )
    return json.dumps(
        {"servers_port": settings.servers_port, "names": names, "behind": settings.behind}
    )


def _roles(hub: Any) -> None:
    """Who may do what.

    Attendees: JupyterHub's own role `user`, which reaches nothing but one's own; and the board,
    which shows each what is theirs.
    """
    helping = ["admin-ui", "list:users", "read:users:activity", "read:servers", "servers"]
    hub.load_roles = [
        {"name": "user", "scopes": ["self", "access:services!service=board"]},
        {
            "name": ASSISTANT,
            "description": "see who works, start and stop servers",
            "groups": [ASSISTANT],
            "scopes": helping,
        },
        {
            "name": INSTRUCTOR,
            "description": "and open an attendee's server, and grade",
            "groups": [INSTRUCTOR],
            "scopes": [*helping, "access:servers", "access:services!service=formgrader"],
        },
        {
            "name": "keeper",
            "services": ["keeper"],
            "scopes": ["list:users", "read:users", "delete:users", "delete:servers"],
        },
        {
            "name": "culler",
            "services": ["culler"],
            "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
        },
    ]


def _services(hub: Any, settings: Settings) -> None:
    from jupyterhub.services.service import _ServiceSpawner

    _ServiceSpawner.poll_interval = RESTART_S
    python = [*WITH_PARENT, sys.executable, "-P", "-m"]
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    own = {
        f"JUPYTER_{part}_DIR": str(Path(settings.folder) / "run" / "formgrader" / part.lower())
        for part in ("CONFIG", "DATA", "RUNTIME")
    }
    hub.services = [
        {
            "name": "formgrader",
            "url": f"http://127.0.0.1:{settings.formgrader_port}",
            "command": [*python, "manyhands.hub.services.formgrader"],
            "cwd": settings.root,
            "oauth_no_confirm": True,
            "timeout": START_LIMIT_S,
            "environment": {
                **passed_on,
                **own,
                "MANYHANDS_ROOT": settings.root,
                "MANYHANDS_EXCHANGE": settings.exchange,
                "MANYHANDS_HUB": settings.folder,
            },
        },
        {
            "name": "keeper",
            "command": [
                *python,
                "manyhands.hub.services.expiry",
                settings.folder,
                str(settings.limits.disk_bytes),
                str(settings.tidy_up_s),
            ],
        },
        {
            "name": "culler",
            "command": [
                *python,
                "jupyterhub_idle_culler",
                f"--timeout={settings.idle_s}",
                f"--cull-every={max(1, min(60, settings.idle_s // 4))}",
            ],
        },
    ]
    if settings.kind != "slurm":  # they speak to servers through sockets of this machine
        hub.services += [
            {
                "name": "places",
                "command": [
                    *python,
                    "manyhands.hub.services.check_queue",
                    str(sockets(settings.folder) / PLACES),
                    str(settings.places),
                ],
            },
            {
                "name": "board",
                "command": [*python, "manyhands.hub.board.service", settings.folder],
                "url": f"http://127.0.0.1:{settings.board_port}",
                "oauth_no_confirm": True,
                "timeout": START_LIMIT_S,
            },
        ]

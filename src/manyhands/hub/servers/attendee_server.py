"""The server of one attendee, started by the hub: JupyterLab on the page Start_Here.

It is `python -m manyhands.hub.servers.attendee_server`.

It answers on a socket that the hub has opened, and reaches the hub through another: its own network
has no way out. As a job on a cluster's node it has the node's network: there it opens its own port,
and tells the hub which. In a pod of Kubernetes (docker/z2jh-values.yaml) it has its own address,
and the port that the hub names.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from jupyter_server.serverapp import ServerApp
from jupyterhub.singleuser.extension import JupyterHubSingleUser
from traitlets import Integer

from manyhands.hub.servers import relay, socket_handover
from manyhands.hub.services import hub_auth

if TYPE_CHECKING:
    from collections.abc import Sequence


# settings that switch it on
ASSIGNMENT_LIST = Path(__file__).parents[2] / "grading" / "nbgrader" / "attendee"


class SandboxServer(ServerApp):
    """Jupyter's server on a socket that was handed in, else on a free port."""

    fd = Integer(help="the number of the socket; 0: none was handed in").tag(config=True)

    def _find_http_port(self) -> None:
        """There is nothing to look for."""

    def _bind_http_server_tcp(self) -> bool:
        listener = socket.socket(fileno=self.fd) if self.fd else socket.create_server((self.ip, 0))
        listener.listen(128)
        listener.setblocking(False)
        self.http_server.add_socket(listener)
        if not self.fd:
            tell(listener.getsockname()[1])
        return True


def tell(port: int) -> None:
    """Tell the hub at which port of this node we answer.

    `manyhands.hub.servers.slurm.OnlyItsPort` hears it.
    """
    request = Request(
        f"{os.environ['JUPYTERHUB_API_URL']}/batchspawner",
        json.dumps({"port": port}).encode(),
        {"Authorization": f"token {os.environ['JUPYTERHUB_API_TOKEN']}"},
    )
    build_opener(ProxyHandler({})).open(request, timeout=60).close()


def prepare(root: Path, course: Path) -> None:
    """Make the person's home a place to learn in.

    It gets links to the course, own copies in work/, and the start page.
    """
    from manyhands.learner import for_attendees, for_instructors, jupyter_server
    from manyhands.learner.prepare import prepare as make_ready
    from manyhands.learner.trust import sign_course

    for name, target in (
        ("notebooks", "notebooks"),
        ("labs", "labs"),
        ("slides", "slides"),
        (".course", ""),
    ):
        link = root / name
        if not link.is_symlink() and not link.exists():
            link.symlink_to(course / target)
    for_instructors.link(root)
    make_ready(root, fetched=for_attendees.released())
    sign_course(root, jupyter_server.state_folder(root) / "data")
    jupyter_server.put_settings(root)


def settings(root: Path) -> list[str]:
    """Command line options of the server."""
    from manyhands.learner import start_page
    from manyhands.learner.jupyter_server import EXTENSIONS, SETTINGS, first_page

    return [
        f"--ServerApp.root_dir={root}",
        f"--ServerApp.default_url={first_page(root, f'work/{start_page.NAME}')}",
        f"--LabApp.app_settings_dir={SETTINGS}",
        "--LabApp.custom_css=True",
        f"--LabApp.extra_labextensions_path={EXTENSIONS}",
        "--ServerApp.terminado_settings={'shell_command': ['/bin/bash']}",
    ]


def main(argv: Sequence[str]) -> None:
    """Prepare the home of the person, and run the server until it is ended."""
    from manyhands.learner.jupyter_server import environment

    os.umask(0o077)
    root = Path(os.environ["MANYHANDS_ROOT"])
    os.environ.update(environment(root))
    if "MANYHANDS_EXCHANGE" in os.environ:
        os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(
            [str(ASSIGNMENT_LIST), os.environ["JUPYTER_CONFIG_PATH"]]
        )
    if inside := os.environ.get("MANYHANDS_HUB_SOCKET"):
        relay.port_to_unix(urlsplit(os.environ["JUPYTERHUB_API_URL"]).port or 80, inside)
    prepare(root, Path(os.environ["MANYHANDS_COURSE"]))
    hub_auth.use_in_jupyter_server()
    if "KUBERNETES_SERVICE_HOST" not in os.environ:
        # a subclass would not be found: extensions go by the name of their package
        JupyterHubSingleUser.serverapp_class = SandboxServer
    if path := os.environ.get("MANYHANDS_DOORS"):
        argv = [*argv, f"--SandboxServer.fd={socket_handover.fetch(path)}"]
    JupyterHubSingleUser.launch_instance([*settings(root), *argv])


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])

"""An attendee's server in a container of the image `manyhands:cpu`.

It is a DockerSpawner with the walls and the ways of a sandbox.

The container has no network. As in a sandbox, the server answers on a socket that the hub has opened,
and reaches the hub through the sockets in `run/sockets`; one of these, `doors.sock`, hands that
first socket over. Home, course, sockets and exchange are folders of the hub's, which must have the
same names for the engine. The kernel must show the same user numbers on both sides: no rootless
engine, no `userns-remap`.
"""

from __future__ import annotations

import os
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import docker
from docker.types import DeviceRequest, LogConfig, Ulimit
from dockerspawner import DockerSpawner
from traitlets import Integer

from manyhands.hub.folder import DOORS, sockets
from manyhands.hub.servers import sandbox
from manyhands.hub.servers.socket_handover import Doors
from manyhands.hub.servers.spawner import SERVER, InTurn

if TYPE_CHECKING:
    import socket
    from pathlib import Path
    from typing import Any

    from manyhands.hub.accounts.table import Account


HUB = "manyhands.hub"  # the label of each container: its hub's folder
ETC = ("passwd", "group")  # the rest of /etc is the image's and the engine's
OPEN_FILES = 4096
LOG = "10m"
TEMPORARY = ("/tmp", "/var/tmp")


class ContainerSpawner(InTurn, DockerSpawner):
    """A container for each person, with the person's user number and no privilege.

    What is written outside the home is memory.
    """

    gpus = Integer(
        help="the number of GPUs of the engine's machine, of which each person gets one in turn"
    ).tag(config=True)
    remove, use_internal_ip = True, True
    _doors: Doors | None = None  # one for the hub

    async def start_for(self, account: Account, home: Path, door: socket.socket) -> None:
        """Start the container, which fetches the socket by itself."""
        if ContainerSpawner._doors is None:
            ContainerSpawner._doors = Doors(sockets(self.folder) / DOORS)
        ContainerSpawner._doors.keep(account.uid, door)
        inside = sandbox.home_of(account.name)
        self.cmd = ["python", *SERVER]
        self.cpu_limit = self.limits.cpus
        self.extra_create_kwargs = {
            "user": f"{account.uid}:{account.uid}",
            "hostname": "classroom",
            "working_dir": inside,
            "labels": {HUB: self.folder},
        }
        self.extra_host_config = self._limits_and_walls(account)
        self.volumes = {str(home): inside, **{place: place for place in self.shared()}}
        self.read_only_volumes = {
            f"{self.folder}/course": sandbox.COURSE,
            **self.shown(account),
            str(sockets(self.folder)): sandbox.SOCKETS,
            **{
                str(path): f"/etc/{name}"
                for name, path in sandbox.etc_files(account, self.folder).items()
                if name in ETC
            },
        }
        await DockerSpawner.start(self)

    def _limits_and_walls(self, account: Account) -> dict[str, Any]:
        most = self.limits
        gpu = (
            DeviceRequest(
                driver="nvidia", device_ids=[str(account.uid % self.gpus)], capabilities=[["gpu"]]
            )
            if self.gpus
            else None
        )
        return {
            "network_mode": "none",
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "read_only": True,
            "auto_remove": False,
            "tmpfs": dict.fromkeys(TEMPORARY, f"mode=1777,size={most.memory_bytes}"),
            "shm_size": most.memory_bytes,
            # anybody inside can write to it
            "log_config": LogConfig(type="json-file", config={"max-size": LOG}),
            "memswap_limit": most.memory_bytes,
            "pids_limit": most.processes,
            "device_requests": [gpu] if gpu else None,
            "ulimits": [
                Ulimit(name=name, soft=number, hard=number)
                for name, number in {
                    "fsize": most.disk_bytes,
                    "core": 0,
                    "nproc": most.processes,
                    "nofile": OPEN_FILES,
                }.items()
            ],
        }

    async def get_ip_and_port(self) -> tuple[str, int]:
        """Return the address of the socket, which is not in the container's network."""
        return "127.0.0.1", self.port

    def get_env(self) -> dict[str, str]:
        """Add the socket at which the server fetches its own."""
        return self.user_env(super().get_env()) | {"MANYHANDS_DOORS": f"{sandbox.SOCKETS}/{DOORS}"}

    async def stop(self, now: bool = False) -> None:
        """Stop the container; one that is gone is no error."""
        with suppress(docker.errors.APIError):
            written = await self.docker("logs", self.container_id)
            with open(
                os.open(self.log_of(self.user), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"
            ) as log:
                log.write(written)
        await super().stop(now)


def why_none(image: str) -> str | None:
    """Why no container of this image can be started, or None."""
    try:
        with closing(docker.from_env()) as engine:
            engine.images.get(image)
    except docker.errors.ImageNotFound:
        return f"The image {image} does not exist here. docker/README.md says how to build it."
    except docker.errors.DockerException as problem:
        return (
            "No engine of containers answers (DOCKER_HOST names its socket, unless it is "
            f"/var/run/docker.sock): {problem}"
        )
    return None


def remove(folder: str) -> None:
    """Remove the containers that an earlier hub in this folder has left."""
    with closing(docker.from_env()) as engine:
        for left in engine.containers.list(all=True, filters={"label": f"{HUB}={folder}"}):
            left.remove(force=True)

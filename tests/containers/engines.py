"""An engine of containers for the tests: Docker, or podman with the docker client.

podman is reached over its socket; compose is on top. Not in conftest: `import conftest` may mean
another folder's.
"""

import json
import os
import shlex
import subprocess
import time
from pathlib import Path

import needs

ROOT = Path(__file__).resolve().parents[2]
BASE = "localhost/manyhands-base:bookworm"
LIMIT_S = 3600  # of one build: Horovod is compiled
# Debian's podman, as root, where neither systemd nor version 2 of the control groups is
PODMAN = """\
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=8192:8192"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "cni"
"""


def call(*command, limit_s=600, **options):
    """Run a command; its output. An AssertionError with all that it wrote where it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=limit_s,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        **options,
    )
    assert done.returncode == 0, (
        f"{shlex.join(map(str, command))}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    )
    return done.stdout


def wait_for(what, patience_s=300):
    """Ask until the answer is true; returns it."""
    until = time.monotonic() + patience_s
    while not (answer := what()):
        assert time.monotonic() < until, f"not within {patience_s} s: {what}"
        time.sleep(0.5)
    return answer


def docker_answers(*words):
    """Whether there is a docker client, and what it asks for too.

    That is its engine (`version`), or its compose.
    """
    return (
        bool(needs.search("docker"))
        and subprocess.run(["docker", *words], capture_output=True, timeout=300).returncode == 0
    )


def compose_command():
    return (
        ["docker", "compose"]
        if docker_answers("compose", "version")
        else [needs.search("docker-compose")]
    )


def missing():
    """All that these tests lack here, in a sentence that says what to do; None if nothing."""
    parts = {"docker": "docker.io"}
    if not docker_answers("compose", "version"):
        parts["docker-compose"] = "docker-compose"
    with_podman = not docker_answers("version")
    if with_podman:
        parts |= {
            "podman": "podman",
            "runc": "runc",
            "host-local": "containernetworking-plugins",
            "iptables": "iptables",
            "debootstrap": "debootstrap",
        }
    packages = [
        package for name, package in parts.items() if not needs.search(name, "/usr/lib/cni")
    ]
    lacks = [f"Debian packages (apt-get install {' '.join(packages)})"] if packages else []
    if with_podman and os.geteuid():
        lacks.append("root, with which podman's socket is tested; or a Docker that answers")
    return (
        f"The tests of containers cannot run here. What is missing: {'; and '.join(lacks)}."
        if lacks
        else None
    )


class Engine:
    """`docker` on whatever answers: Docker itself, or podman's socket."""

    def __init__(self, builder, compose):
        self.builder, self._compose, self.seconds = builder, compose, {}
        # of the build, as docker/README.md says
        self.options = shlex.split(os.environ.get("MANYHANDS_BUILD_OPTIONS", ""))

    def docker(self, *arguments, **options):
        return call("docker", *arguments, **options)

    def command(self, project, *arguments):
        return [
            *self._compose,
            "--file",
            str(ROOT / "docker" / "compose.yaml"),
            "--project-name",
            project,
            *arguments,
        ]

    def compose(self, project, *arguments, **options):
        return call(*self.command(project, *arguments), **options)

    def build(self, target):
        """The image of a target; its build takes little where all layers are there.

        With MANYHANDS_BUILT=1 the image that is there is taken as it is.
        """
        image, begun = f"manyhands:{target}", time.monotonic()
        if os.environ.get("MANYHANDS_BUILT") == "1":
            return image
        call(
            self.builder,
            "build",
            *self._base(),
            *self.options,
            "--file",
            "docker/Dockerfile",
            "--target",
            target,
            "--tag",
            image,
            ".",
            limit_s=LIMIT_S,
        )
        self.seconds[target] = time.monotonic() - begun
        return image

    def _base(self):
        """Debian's image where it can be had or a base was named, else one that we make."""
        if (
            any(option.startswith("BASE=") for option in self.options)
            or subprocess.run(
                [self.builder, "pull", "--quiet", "docker.io/library/debian:bookworm-slim"],
                capture_output=True,
                timeout=600,
            ).returncode
            == 0
        ):
            return []
        if subprocess.run([self.builder, "image", "inspect", BASE], capture_output=True).returncode:
            needs.program("debootstrap", "debootstrap")
            call(ROOT / "docker" / "make_base.sh", self.builder, BASE, limit_s=1800)
        return ["--build-arg", f"BASE={BASE}"]

    def facts(self, kind, name):
        return json.loads(self.docker(kind, "inspect", name))[0]

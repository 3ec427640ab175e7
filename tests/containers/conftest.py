"""What the container tests share: an engine, the images, and a compose project for each test."""

import os
import subprocess

import pytest

import needs
from engines import PODMAN, Engine, compose_command, wait_for


@pytest.fixture(scope="session")
def engine(tmp_path_factory):
    needs.program("docker", "docker.io")
    compose = compose_command()
    if subprocess.run(["docker", "version"], capture_output=True, timeout=300).returncode == 0:
        yield Engine("docker", compose)
        return
    needs.program("podman", "podman runc containernetworking-plugins iptables")
    if os.geteuid():
        needs.lacking("root", "podman's socket is tested as root")
    folder = tmp_path_factory.mktemp("podman")
    (folder / "containers.conf").write_text(PODMAN)
    with pytest.MonkeyPatch.context() as patch:
        if "CONTAINERS_CONF" not in os.environ:
            patch.setenv("CONTAINERS_CONF", str(folder / "containers.conf"))
        patch.setenv("DOCKER_HOST", f"unix://{folder}/podman.sock")
        patch.setenv("COMPOSE_HTTP_TIMEOUT", "600")  # on a busy machine
        patch.setenv("DOCKER_CONFIG", str(folder))  # nobody's own contexts and passwords
        with open(folder / "service.log", "w") as log:
            service = subprocess.Popen(["podman", "system", "service", "--time=0", os.environ["DOCKER_HOST"]], stdout=log, stderr=log,
                                       cwd=folder)  # where it writes a file "oom" when a container ran out of memory
        try:
            wait_for(lambda: service.poll() is None and subprocess.run(["docker", "version"], capture_output=True, timeout=300).returncode == 0, 600)
            yield Engine("podman", compose)
        finally:
            service.terminate()
            service.wait(60)


@pytest.fixture(scope="session")
def cpu(engine):
    return engine.build("cpu")


@pytest.fixture(scope="session")
def hub(engine):
    return engine.build("hub")


@pytest.fixture
def project(engine, monkeypatch):
    """The name of a compose project of the test's own; its containers, networks and volumes go with the test."""
    name = f"manyhands-test-{os.getpid()}"
    monkeypatch.setenv("MANYHANDS_PORT", "")
    yield name
    for profile in ("lab", "ring", "hub"):
        engine.compose(name, "--profile", profile, "down", "--volumes", "--timeout", "5", "--remove-orphans")

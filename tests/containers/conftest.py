"""What the container tests share: an engine, the images, and a compose project for each test."""

import os
import subprocess

import pytest
from engines import PODMAN, Engine, compose_command, docker_answers, missing, wait_for


def pytest_collection_finish(session):
    """They run only for those who ask for them by name.

    Where that cannot be, it is a failure, and is reported once.
    """
    asked = (
        any(item.get_closest_marker("containers") for item in session.items)
        and not session.config.option.collectonly
    )
    if asked and (why := missing()):
        raise pytest.UsageError(why)


@pytest.fixture(scope="session")
def engine(tmp_path_factory):
    compose = compose_command()
    if docker_answers("version"):
        yield Engine("docker", compose)
        return
    folder = tmp_path_factory.mktemp("podman")
    (folder / "containers.conf").write_text(PODMAN)
    with pytest.MonkeyPatch.context() as patch:
        if "CONTAINERS_CONF" not in os.environ:
            patch.setenv("CONTAINERS_CONF", str(folder / "containers.conf"))
        patch.setenv("DOCKER_HOST", f"unix://{folder}/podman.sock")
        patch.setenv("COMPOSE_HTTP_TIMEOUT", "600")  # on a busy machine
        patch.setenv("DOCKER_CONFIG", str(folder))  # nobody's own contexts and passwords
        with open(folder / "service.log", "w") as log:
            service = subprocess.Popen(
                ["podman", "system", "service", "--time=0", os.environ["DOCKER_HOST"]],
                stdout=log,
                stderr=log,
                # where it writes a file "oom" when a container ran out of
                # memory
                cwd=folder,
            )
        try:
            wait_for(lambda: service.poll() is None and docker_answers("version"), 600)
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
    """Return the name of a compose project for one test.

    Its containers, networks and volumes go with the test.
    """
    name = f"manyhands-test-{os.getpid()}"
    monkeypatch.setenv("MANYHANDS_PORT", "")
    yield name
    for profile in ("lab", "ring", "hub"):
        engine.compose(
            name, "--profile", profile, "down", "--volumes", "--timeout", "5", "--remove-orphans"
        )

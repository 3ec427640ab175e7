"""The images: what is in them, and what must not be."""

import pytest

pytestmark = pytest.mark.containers


def inside(engine, image, *command):
    return engine.docker("run", "--rm", "--network", "none", image, *command)


def test_cpu_has_the_frameworks_and_is_not_root(engine, cpu):
    script = (
        "import os, torch, tensorflow, horovod.torch as hvd; print(os.getuid(), "
        "bool(hvd.gloo_built()), bool(hvd.mpi_built()))"
    )
    assert inside(engine, cpu, "python", "-c", script).split() == ["1000", "True", "True"]


def test_cpu_has_the_course_and_neither_sources_nor_solutions(engine, cpu):
    files = inside(
        engine,
        cpu,
        "sh",
        "-c",
        "ls -d /course/*; find / -xdev '(' -path /proc -o -path /usr -o -name .venv -o -type d ! "
        "-readable ')' -prune -o '(' -name solutions -o -name sources -o -name clone ')' -print",
    )
    assert files.split() == [
        "/course/facts.json",
        "/course/labs",
        "/course/notebooks",
        "/course/references",
        "/course/slides",
    ]


def test_a_learner_cannot_change_the_kit(engine, cpu):
    assert (
        inside(
            engine, cpu, "sh", "-c", "find /opt/manyhands /course -writable -not -type l | head -3"
        )
        == ""
    )


@pytest.mark.parametrize("target", ["cpu", "hub"])
def test_no_setting_of_a_package_index_is_in_the_image(engine, target, request):
    """pip's and apt's settings are Debian's.

    Nothing that the set-up wrote names a different place.
    """
    script = (
        "cat /etc/pip.conf ~/.config/pip/pip.conf 2>/dev/null; ls /opt/manyhands/.manyhands /wheel "
        "2>/dev/null; ls /etc/apt/apt.conf.d; cat /opt/manyhands/.venv/*.json 2>/dev/null"
    )
    image = request.getfixturevalue(target)
    settings = inside(
        engine,
        image,
        "sh",
        "-c",
        script + "; cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null; true",
    )
    assert (
        "index" not in settings and "setup.log" not in settings and "find-links" not in settings
    ), settings
    urls = {word for word in settings.split() if "://" in word}
    assert all(
        word.startswith(("http://deb.debian.org/", "file:///opt/manyhands")) for word in urls
    ), urls
    history = engine.docker("history", "--no-trunc", image)
    assert "index-url" not in history and "://" not in history.replace("docker.io://", ""), history


def test_hub_has_no_framework_and_its_commands_run(engine, hub):
    script = (
        "import importlib.util as u, os; print(os.getuid(), [name for name in ('torch', "
        "'tensorflow', 'keras', 'horovod') if u.find_spec(name)])"
    )
    assert inside(engine, hub, "python", "-c", script).strip() == "1000 []"
    for words in (
        ["jupyterhub", "--version"],
        ["python", "-c", "import dockerspawner"],
        *(["manyhands", name, "--help"] for name in ("hub", "accounts", "release", "collect")),
    ):
        inside(engine, hub, *words)


@pytest.mark.parametrize("target", ["cpu", "hub"])
def test_sizes_and_seconds_are_told(engine, target, request):
    """What docker/README.md reports; seen with `pytest -rA`."""
    image = request.getfixturevalue(target)
    print(
        f"{image}: {engine.facts('image', image)['Size'] / 1e9:.2f} GB, built in "
        f"{engine.seconds.get(target, 0):.0f} s"
    )
    assert engine.facts("image", image)["Config"]["User"] == "learner"

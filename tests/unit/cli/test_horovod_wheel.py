"""The Horovod wheel: the edits of its sources, the cache, two builds at once.

Nothing is compiled here.
"""

import errno
import io
import json
import multiprocessing
import sys
import tarfile
import time
from pathlib import Path

import pytest

from manyhands.cli import horovod_wheel

VERSIONS = {"torch": "2.13.0+cpu", "tensorflow-cpu": "2.21.0", "python": "3.11"}


@pytest.fixture(autouse=True)
def versions(monkeypatch):
    monkeypatch.setattr(horovod_wheel, "installed_versions", lambda python: VERSIONS)


def sources():
    """{path: text} of what the edits look for in Horovod's sources."""
    texts = {}
    for name, old, _ in horovod_wheel.edits():
        texts[name] = texts.get(name, "") + f"before\n{old}\nafter\n"
    return texts


def pretend(log, pause_s=0.0):
    """A `call` that stands for pip: `pip download` brings an archive, `pip wheel` makes a wheel."""

    def call(command, env, cwd, watch):
        with open(log, "a") as lines:
            lines.write(f"{command[3]} {env['MAKEFLAGS']}\n")
        if command[3] == "download":
            with tarfile.open(
                Path(cwd) / f"horovod-{horovod_wheel.VERSION}.tar.gz", "w:gz"
            ) as archive:
                for name, text in sources().items():
                    member = tarfile.TarInfo(f"horovod-{horovod_wheel.VERSION}/{name}")
                    member.size = len(text)
                    archive.addfile(member, io.BytesIO(text.encode()))
        else:
            edited = (Path(command[-1]) / "horovod/torch/CMakeLists.txt").read_text()
            watch("[ 42%] Building CXX object x.o")
            time.sleep(pause_s)
            (Path(cwd) / f"horovod-{horovod_wheel.VERSION}-cp311.whl").write_text(edited)

    return call


def test_a_wheel_is_built_once_from_edited_sources(tmp_path):
    call = pretend(tmp_path / "log")
    wheel = horovod_wheel.get_wheel(sys.executable, call, tmp_path / "cache")
    assert (
        "CMAKE_CXX_STANDARD 17" in wheel.read_text() and wheel.parent.parent == tmp_path / "cache"
    )
    assert horovod_wheel.get_wheel(sys.executable, call, tmp_path / "cache") == wheel
    assert [line.split()[0] for line in (tmp_path / "log").read_text().splitlines()] == [
        "download",
        "wheel",
    ]


@pytest.mark.parametrize(
    "torch, standard",
    [("2.11.0", 17), ("2.13.0+cpu", 17), ("2.14.1+cu130", 20), ("3.0.0a0+git1", 20)],
)
def test_a_sites_pytorch_gets_the_language_that_its_headers_ask_for(
    torch, standard, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        horovod_wheel, "installed_versions", lambda python: {**VERSIONS, "torch": torch}
    )
    wheel = horovod_wheel.get_wheel(sys.executable, pretend(tmp_path / "log"), tmp_path / "cache")
    assert f"CMAKE_CXX_STANDARD {standard})" in wheel.read_text()


def test_two_builds_at_once_are_one_build(tmp_path):
    context = multiprocessing.get_context("fork")
    both = [
        context.Process(
            target=horovod_wheel.get_wheel,
            args=(
                sys.executable,
                pretend(tmp_path / "log", 1.5),
                tmp_path / "cache",
                (tmp_path / "waited").write_text,
            ),
        )
        for _ in range(2)
    ]
    for process in both:
        process.start()
    for process in both:
        process.join(60)
    assert [process.exitcode for process in both] == [0, 0] and (
        tmp_path / "waited"
    ).read_text().startswith("building, 42 %")
    assert (tmp_path / "log").read_text().count("wheel") == 1


def test_a_failed_build_leaves_nothing_in_the_cache(tmp_path):
    def fail(command, env, cwd, watch):
        if command[3] == "download":
            return pretend(tmp_path / "log")(command, env, cwd, watch)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        horovod_wheel.get_wheel(sys.executable, fail, tmp_path / "cache")
    assert list((tmp_path / "cache").rglob("*.whl")) == []
    assert horovod_wheel.get_wheel(
        sys.executable, pretend(tmp_path / "log"), tmp_path / "cache"
    ).exists()


def test_what_a_killed_build_has_compiled_is_used_and_if_that_fails_all_is_built_again(tmp_path):
    def killed(command, env, cwd, watch):
        if command[3] == "download":
            return pretend(tmp_path / "log")(command, env, cwd, watch)
        (Path(command[-1]) / "compiled.o").write_text("half of it")
        (Path(command[-1]) / "build/lib").mkdir(parents=True)
        (Path(command[-1]) / "build/lib/mpi_lib_v2.so").write_text(
            "half of it, and newer than what it is linked from"
        )
        raise KeyboardInterrupt

    def goes_on(command, env, cwd, watch):
        if command[3] == "wheel" and (Path(command[-1]) / "compiled.o").exists():
            assert not list(Path(command[-1]).glob("**/*.so"))
            with open(tmp_path / "log", "a") as lines:
                lines.write("went on\n")
            if broken:
                raise RuntimeError("compiled.o: file truncated")
        pretend(tmp_path / "log")(command, env, cwd, watch)

    for broken, calls in (
        (False, ["download", "went", "wheel"]),
        (True, ["download", "went", "download", "wheel"]),
    ):
        (tmp_path / "log").write_text("")
        cache = tmp_path / f"cache-{broken}"
        with pytest.raises(KeyboardInterrupt):
            horovod_wheel.get_wheel(sys.executable, killed, cache)
        assert horovod_wheel.get_wheel(sys.executable, goes_on, cache).exists()
        assert [line.split()[0] for line in (tmp_path / "log").read_text().splitlines()] == calls
        assert [path.suffix for path in cache.iterdir() if path.is_dir()] == [""], (
            "nothing is left but the wheel's folder"
        )


def test_without_locks_a_build_has_a_folder_of_its_own(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(horovod_wheel.fcntl, "flock", no_locks)
    others = tmp_path / "cache" / f"{horovod_wheel.wheel_key(VERSIONS)}-node1-77.build"
    others.mkdir(parents=True)
    assert horovod_wheel.get_wheel(
        sys.executable, pretend(tmp_path / "log"), tmp_path / "cache"
    ).exists()
    assert others.is_dir() and [path.name for path in (tmp_path / "cache").glob("*.build")] == [
        others.name
    ]


def test_an_edit_that_no_longer_fits_is_an_error(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text("something else")
    with pytest.raises(RuntimeError, match="does not contain"):
        horovod_wheel.edit_sources(tmp_path)


def test_the_key_changes_with_versions_and_with_the_recipe(monkeypatch):
    key = horovod_wheel.wheel_key(VERSIONS)
    assert key == horovod_wheel.wheel_key(json.loads(json.dumps(VERSIONS)))
    assert key != horovod_wheel.wheel_key({**VERSIONS, "torch": "2.13.0+cu130"})
    monkeypatch.setattr(horovod_wheel, "EDITS", horovod_wheel.EDITS[:-1])
    assert key != horovod_wheel.wheel_key(VERSIONS)


def test_the_build_ignores_the_users_settings_and_uses_every_core():
    env = horovod_wheel.build_environment(
        "/venv/bin", {"PATH": "/usr/bin", "HOROVOD_WITHOUT_GLOO": "1", "MANYHANDS_BUILD_JOBS": "3"}
    )
    assert "HOROVOD_WITHOUT_GLOO" not in env and env["HOROVOD_WITH_MPI"] == "1"
    assert env["PATH"].startswith("/venv/bin:") and env["MAKEFLAGS"] == "-j3"


def test_a_build_for_gpus_is_asked_for_and_another_wheel(monkeypatch):
    asked = {
        "MANYHANDS_HOROVOD_GPU": "1",
        "PATH": "/usr/bin",
        "HOROVOD_NCCL_HOME": "/opt/nccl",
        "HOROVOD_GPU_OPERATIONS": "MPI",
    }
    env = horovod_wheel.build_environment("/venv/bin", asked)
    assert (env["HOROVOD_GPU_OPERATIONS"], env["HOROVOD_NCCL_HOME"], env["HOROVOD_WITH_GLOO"]) == (
        "NCCL",
        "/opt/nccl",
        "1",
    )
    assert "HOROVOD_GPU_OPERATIONS" not in horovod_wheel.build_environment(
        "/venv/bin", {**asked, "MANYHANDS_HOROVOD_GPU": "0"}
    )
    assert horovod_wheel.wheel_key(VERSIONS, asked) != horovod_wheel.wheel_key(VERSIONS, {})
    assert all("Pytorch_CUDA" not in old for _, old, _ in horovod_wheel.edits(asked))
    missing = [what for what, _ in horovod_wheel.missing_tools(sys.executable, "/nowhere", asked)]
    assert "nvcc, CUDA's compiler" in missing


def test_the_cache_lies_outside_the_clone():
    assert horovod_wheel.cache_folder({"XDG_CACHE_HOME": "/elsewhere"}) == Path(
        "/elsewhere/manyhands/wheels"
    )
    assert horovod_wheel.cache_folder({}) == Path.home() / ".cache/manyhands/wheels"

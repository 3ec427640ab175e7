"""Make the folder that travels to a machine with a GPU and no network.

`python tests/gpu/prepare.py [FOLDER]` makes it:

    FOLDER/run.py           what is started there
    FOLDER/course.tar.xz    the files of this clone that a run needs, as they are now
    FOLDER/site.tar.xz      the packages of packages.txt for Python 3.12 on Linux x86-64, unpacked from their wheels

The versions are those of constraints.txt. There is no torch in it: it is that machine's. Tests,
headers and faster doubles of what is there in Python stay here, so that the folder is small. An
existing FOLDER is replaced only if this command made it.
"""

import argparse
import io
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYTHON = "3.12"
# glibc 2.28 and older, as pip names them
PLATFORMS = [
    "manylinux_2_28_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_26_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
    "manylinux_2_12_x86_64",
    "manylinux2010_x86_64",
    "manylinux_2_5_x86_64",
    "manylinux1_x86_64",
]
COURSE = (
    "src",
    "tests",
    "notebooks",
    "solutions",
    "sources",
    "constraints.txt",
    "pyproject.toml",
    "environment.yml",
    "README.md",
    "docs/HANGS.md",
)
UNNEEDED = re.compile(
    r"(^|/)(tests?|include|sample_data)/|\.(a|pyi|pyx|pxd|h)$|^[^/]+\.data/"
    r"|^fontTools/.*\.so$|/(_avif|libavif)"
)  # which do without
MOST_BYTES = 40_000_000
DIGITS = "sklearn/datasets/data/digits.csv.gz"  # the course reads this one file of scikit-learn


def pins():
    """["numpy==2.4.6", ...]: the packages that travel, each at the course's version."""
    wanted = [
        line for line in (HERE / "packages.txt").read_text().split("\n") if line and line[0] != "#"
    ]
    pinned = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text().split("\n")
        if "==" in line
    )
    missing = set(wanted) - set(pinned)
    if missing:
        raise SystemExit(
            f"constraints.txt has no version of {', '.join(sorted(missing))}: name others in "
            "packages.txt"
        )
    return [f"{name}=={pinned[name]}" for name in wanted]


def download(folder):
    """Fetch the wheels into `folder`, with pip's own settings of where from."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--python-version",
        PYTHON,
        "--dest",
        str(folder),
    ]
    for platform in PLATFORMS:
        command += ["--platform", platform]
    subprocess.run([*command, *pins()], check=True)


def pack_site(wheels, path):
    """One archive of what the wheels hold, and the digits of scikit-learn from this environment."""
    with tarfile.open(path, "w:xz", preset=2) as archive:
        for wheel in sorted(wheels.glob("*.whl")):
            with zipfile.ZipFile(wheel) as content:
                for name in content.namelist():
                    if not name.endswith("/") and not UNNEEDED.search(name):
                        _add(archive, f"site-packages/{name}", content.read(name))
        from importlib.util import find_spec

        home = Path(find_spec("sklearn").submodule_search_locations[0])
        _add(
            archive,
            "digits/sklearn/__init__.py",
            b'"""Not scikit-learn: only its file of digits."""\n',
        )
        _add(archive, f"digits/{DIGITS}", (home.parent / DIGITS).read_bytes())


def course_files():
    """The files of this clone that a run needs: those that git knows or would take."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *COURSE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [name for name in sorted(set(listed.split("\0")) - {""}) if (ROOT / name).is_file()]


def pack_course(path):
    """One archive of these files, as they are now."""
    with tarfile.open(path, "w:xz", preset=2) as archive:
        for name in course_files():
            _add(archive, f"course/{name}", (ROOT / name).read_bytes())


def _add(archive, name, content):
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), 0o644
    archive.addfile(info, io.BytesIO(content))


def prepare(folder):
    """Make the folder; returns its size in bytes.

    Raises SystemExit where it cannot be made or is too large.
    """
    folder = Path(folder)
    if folder.exists() and not (folder / "site.tar.xz").exists():
        raise SystemExit(
            f"{folder} is there, and this command has not made it: name another folder"
        )
    with tempfile.TemporaryDirectory(prefix="gpu-") as parts:
        wheels, new = Path(parts, "wheels"), Path(parts, "new")
        new.mkdir()
        download(wheels)
        pack_site(wheels, new / "site.tar.xz")
        pack_course(new / "course.tar.xz")
        shutil.copy(HERE / "run.py", new)
        size = sum(path.stat().st_size for path in new.iterdir())
        if size > MOST_BYTES:
            raise SystemExit(
                f"the folder would have {size / 1e6:.1f} MB, and at most {MOST_BYTES / 1e6:.0f} may"
                " travel: take something out of packages.txt"
            )
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(new, folder)
    return size


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "folder", nargs="?", default=ROOT / "build" / "gpu", help="default: build/gpu in this clone"
    )
    folder = parser.parse_args().folder
    size = prepare(folder)
    print(f"{folder}: {size / 1e6:.1f} MB. There: python3 run.py OUT")


if __name__ == "__main__":
    main()

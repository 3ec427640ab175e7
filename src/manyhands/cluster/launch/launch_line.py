"""What a user types to start a script on several processes.

For example `torchrun --nproc-per-node 2 train.py --lr 0.1`, or a command of other libraries'
launchers. It is read from the words, so that the same script is started here under observers.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# launcher -> (its options that take no value, {option: what it says})
FLAGS = {
    "torchrun": {
        "standalone",
        "no-python",
        "run-path",
        "module",
        "m",
        "use-env",
        "virtual-local-rank",
        "h",
        "help",
    },
    "accelerate": {
        "multi-gpu",
        "cpu",
        "use-deepspeed",
        "use-fsdp",
        "use-megatron-lm",
        "use-xpu",
        "tpu",
        "quiet",
        "q",
        "m",
        "module",
        "no-python",
        "debug",
        "use-mps-device",
        "same-network",
        "enable-cpu-affinity",
        "ipex",
        "use-parallelism-config",
        "tpu-use-cluster",
        "tpu-use-sudo",
        "use-tp",
    },
    "fabric": set(),
    "deepspeed": {
        "m",
        "module",
        "no-python",
        "no-local-rank",
        "force-multi",
        "save-pid",
        "enable-each-rank-log",
    },
    "horovodrun": {"gloo", "mpi", "verbose", "disable-cache", "autotune"},
    "mpirun": {"allow-run-as-root", "oversubscribe", "bind-to-none"},
    "python": {"u", "O", "OO", "B", "s", "S", "E", "I", "P", "q", "v", "b"},
}
NAMES = {"mpiexec": "mpirun", "python3": "python", "lightning": "fabric", sys.executable: "python"}
COUNTS = {
    "nproc-per-node": "ranks",
    "num-processes": "ranks",
    "devices": "ranks",
    "num-gpus": "ranks",
    "np": "ranks",
    "n": "ranks",
    "nnodes": "nodes",
    "num-machines": "nodes",
    "num-nodes": "nodes",
}
# all others start processes as torchrun does
WITH = {"horovodrun": "horovodrun", "mpirun": "mpirun"}
NOT_TAKEN = {
    "use-fsdp",
    "use-deepspeed",
    "use-megatron-lm",
    "config-file",
    "fsdp-config",
    "deepspeed-config-file",
}
TORCHRUN_OPTIONS = (
    "rdzv-backend",
    "rdzv-endpoint",
    "rdzv-id",
    "rdzv-conf",
    "max-restarts",
    "monitor-interval",
    "start-method",
    "role",
    "log-dir",
    "redirects",
    "tee",
    "local-ranks-filter",
    "node-rank",
    "master-addr",
    "master-port",
    "local-addr",
    "numa-binding",
)
ENVIRONMENT = {
    "accelerate": {
        "mixed-precision": "ACCELERATE_MIXED_PRECISION",
        "gradient-accumulation-steps": "ACCELERATE_GRADIENT_ACCUMULATION_STEPS",
        "dynamo-backend": "ACCELERATE_DYNAMO_BACKEND",
    },
    "fabric": {
        "accelerator": "LT_ACCELERATOR",
        "strategy": "LT_STRATEGY",
        "precision": "LT_PRECISION",
        "devices": "LT_DEVICES",
        "num-nodes": "LT_NUM_NODES",
    },
}
NO_SCRIPT = "{line} names no script. Name it as for torchrun: torchrun --nproc-per-node 2 train.py."


@dataclass
class Line:
    """A launch that a user has typed.

    It has a `script`, or a `module` and the file that it is; its `arguments`; how many `ranks` on
    each of `nodes` (None where the line does not say); `launcher`, one of those of `launch`; `env`
    for the ranks; `ignored` options; the `words` of a whole launch line.
    """

    script: str = ""
    module: str = ""
    arguments: list[str] = field(default_factory=list)
    ranks: int | None = None
    nodes: int | None = None
    launcher: str = ""
    env: dict[str, str] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)


def name_of(word: str) -> str | None:
    """The launcher that a word of a command line names, or None."""
    name = NAMES.get(word) or NAMES.get(os.path.basename(word), os.path.basename(word))
    return (
        name if name in FLAGS and not os.path.isfile(word if word.endswith(".py") else "") else None
    )


def split(argv: list[str]) -> tuple[list[str], list[str]]:
    """Split words into a command's own words and the launch line behind them.

    The launch line begins with the first word that names a launcher.
    """
    for at, word in enumerate(argv):
        if word == "--":
            break
        if name_of(word) and not (at and argv[at - 1] in ("--with", "--output")):
            return argv[:at], argv[at:]
    return argv, []


def read(words: Sequence[str]) -> Line:
    """The `Line` that these words are; ValueError where they name no script."""
    name, rest, line = name_of(words[0]), list(words[1:]), Line()
    assert name is not None  # a line begins with a launcher: see `split`
    if name in ("accelerate", "fabric") and rest:
        rest = rest[1:] if not rest[0].startswith("-") else rest  # "launch", "run"
    line.launcher = WITH.get(name, "torchrun")
    as_module, options = False, {}
    while rest and rest[0].startswith("-") and rest[0] != "--":
        word = rest.pop(0)
        option, equals, value = word.lstrip("-").partition("=")
        option = option.replace("_", "-")
        if option in FLAGS[name]:
            as_module |= option in ("m", "module")
            options[option] = ""
        elif name == "python" and option == "m":
            as_module = True
        elif not equals:
            value = rest.pop(0) if rest else ""
        if option not in FLAGS[name] and option != "m":
            options[option] = value
        if name == "python" and as_module:
            break
    rest = rest[1:] if rest[:1] == ["--"] else rest
    if (
        name == "python"
        and as_module
        and rest[:1]
        and rest[0] in ("torch.distributed.run", "torch.distributed.launch")
    ):
        launch = read(["torchrun", *rest[1:]])
        if rest[0].endswith("launch") and "--use_env" not in rest and "--use-env" not in rest:
            launch.env["MANYHANDS_RANK_OPTION"] = "--local-rank"
        return launch
    if name == "python" and as_module and rest[:1] and rest[0] == "accelerate.commands.launch":
        return read(["accelerate", "launch", *rest[1:]])
    if name in WITH and rest[:1] and name_of(rest[0]) == "python":  # mpirun -np 2 python train.py
        inner = read(rest)
        line.script, line.module, line.arguments = inner.script, inner.module, inner.arguments
    elif not rest:
        raise ValueError(NO_SCRIPT.format(line=" ".join(words)))
    elif as_module:
        line.module, line.arguments = rest[0], rest[1:]
    else:
        line.script, line.arguments = rest[0], rest[1:]
    _options(line, name, options)
    return line


def _options(line: Line, name: str, options: dict[str, str]) -> None:
    for option, value in options.items():
        if option in COUNTS and value.split(":")[-1].isdigit():
            setattr(line, COUNTS[option], int(value.split(":")[-1]))
        if option in ENVIRONMENT.get(name, {}):
            line.env[ENVIRONMENT[name][option]] = value
        if option in NOT_TAKEN:
            line.ignored.append(f"--{option.replace('-', '_') if name == 'accelerate' else option}")
    if name == "fabric":
        line.env["LT_CLI_USED"] = "1"
    if name == "deepspeed" and "no-local-rank" not in options:
        line.env["MANYHANDS_RANK_OPTION"] = "--local_rank"
    # there, processes of all machines together
    if line.ranks and line.nodes and name == "accelerate":
        line.ranks = max(1, line.ranks // line.nodes)


def file_of(module: str) -> str:
    """The file of a module that is run with -m, from the current folder on.

    Raises ValueError where there is none.
    """
    place = Path(*module.split("."))
    for path in (place.with_suffix(".py"), place / "__main__.py"):
        for folder in (Path(), Path("src")):
            if (folder / path).is_file():
                return str(folder / path)
    raise ValueError(
        f"there is no module {module} in {os.getcwd()}. Change to the folder in which you run "
        f"python -m {module}."
    )


# known, and not read
OTHERS = {"srun", "sbatch", "composer", "colossalai", "ray", "jsrun", "bash", "sh", "aprun"}
NOT_READ = (
    "{name} is not supported here. Give the line for torchrun instead: manyhands {command} torchrun"
    " --nproc-per-node 4 {script}"
)


def add_options(
    parser: argparse.ArgumentParser, default_ranks: object, launchers: bool = True
) -> None:
    """Add the options of all commands that start a script: how many ranks, and how.

    torchrun's options are understood.
    """
    from manyhands.command_line import python_files

    parser.add_argument(
        "script",
        nargs="?",
        help=(
            "your training script, or the command that starts it: torchrun "
            "--nproc-per-node 2 train.py; accelerate launch train.py; python -m "
            "package.train"
        ),
    ).completer = python_files  # type: ignore[attr-defined]  # argcomplete looks for it
    parser.add_argument(
        "arguments", nargs="*", default=[], help="the script's own arguments, after --"
    )
    parser.add_argument(
        "--ranks", type=int, metavar="N", help=f"number of processes ({default_ranks})"
    )
    parser.add_argument(
        "-m",
        "--module",
        action="store_true",
        help="the script is named as a module, as after python -m",
    )
    parser.add_argument(
        "--as-it-is",
        action="store_true",
        help="use no stand-in for GPUs, so that the script sees that there are none",
    )
    if launchers:
        parser.add_argument(
            "--with",
            dest="launcher",
            default="torchrun",
            help="the launcher that starts them (torchrun)",
            choices=["torchrun", "horovodrun", "mpirun", "accelerate", "fabric", "deepspeed"],
        )
    for name in ("nproc-per-node", "nnodes", *TORCHRUN_OPTIONS):
        parser.add_argument(
            f"--{name}", f"--{name.replace('-', '_')}", dest=name, help=argparse.SUPPRESS
        )
    parser.add_argument("--standalone", action="store_true", help=argparse.SUPPRESS)


def parsed(
    parser: argparse.ArgumentParser, argv: Sequence[str], command: str, default_ranks: int
) -> argparse.Namespace:
    """The options, with what is to be started in `line`, `script`, `arguments` and `ranks`.

    `line` is a `Line`. Raises ValueError where there is nothing to start.
    """
    from manyhands.command_line import no_script, scripts_own

    argv = list(argv)
    mine, words = split(argv)
    own: list[str] = []
    if not words:
        mine, own = scripts_own(argv)
    first = next((word for word in mine if not word.startswith("-")), "")
    if os.path.basename(first) in OTHERS and not os.path.isfile(first):
        rest = argv[next((at for at, word in enumerate(argv) if word.endswith(".py")), len(argv)) :]
        raise ValueError(
            NOT_READ.format(name=first, command=command, script=" ".join(rest) or "train.py")
        )
    options = parser.parse_args(mine)
    if words:
        line = read(words)
        line.words = words
    elif options.script is None:
        parser.error(
            "name a script, or the command that starts it: torchrun --nproc-per-node 2 train.py"
        )
    else:
        name = getattr(options, "launcher", "torchrun")
        line = Line(
            options.script,
            arguments=[*options.arguments, *own],
            launcher=name if name in (*WITH, "torchrun") else "torchrun",
        )
        if options.module:
            line.script, line.module = "", options.script
        _options(line, name, {})
    for option in ("nproc-per-node", "nnodes"):
        value = str(getattr(options, option) or "").split(":")[-1]
        if value.isdigit():
            setattr(line, COUNTS[option], int(value))
    if line.module:
        line.script = file_of(line.module)
        line.env["MANYHANDS_MODULE"] = line.module
        if line.script.startswith("src"):
            line.env["PYTHONPATH"] = os.pathsep.join(
                filter(None, ["src", os.environ.get("PYTHONPATH")])
            )
    if problem := no_script(line.script):
        raise ValueError(problem)
    if options.ranks is not None and options.ranks < 1:
        raise ValueError("--ranks must be 1 or more.")
    line.nodes = line.nodes or 1
    line.ranks = (
        options.ranks or (line.ranks or (default_ranks if line.nodes == 1 else 2)) * line.nodes
    )
    if line.ranks % line.nodes:
        raise ValueError(
            f"{line.ranks} ranks cannot be distributed evenly over {line.nodes} nodes."
        )
    options.line, options.script, options.arguments, options.ranks = (
        line,
        line.script,
        line.arguments,
        line.ranks,
    )
    return options


def warn(line: Line) -> None:
    """Say on stderr which options of the launch have no effect here."""
    if line.ignored:
        words = " ".join([f"-m {line.module}" if line.module else line.script, *line.arguments])
        print(
            f"Not passed on to the script: {', '.join(line.ignored)}. It runs as this line starts "
            f"it: torchrun --nproc-per-node {line.ranks} {words}",
            file=sys.stderr,
        )

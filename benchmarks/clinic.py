"""What the clinic finds in each pattern of a training script, right and with planted mistakes.

`python -m benchmarks clinic [--ranks 2] [NAME ...] [--mistake M] [--show]`: the patterns are those
of `tests/clinic/patterns/` and scripts in the manner of public repositories (`public.py`). Exit
code 1 where something was missed, or found in a right one.
"""

import argparse
import time

from . import SMOKE, from_tests, public


def main(argv):
    """Run the clinic on the patterns, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks clinic")
    parser.add_argument("patterns", nargs="*", metavar="NAME")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument(
        "--mistake", help="only this planted mistake ('' is the right script), of a public script"
    )
    parser.add_argument(
        "--show", action="store_true", help="print what the command printed, of a public script"
    )
    arguments = parser.parse_args(argv)
    from_tests("clinic")
    from planted import PATTERNS, look

    print("| script | planted | found | likely mistakes | s |\n|---|---|---|---|---|", flush=True)
    missed = 0
    for pattern in PATTERNS:
        if arguments.patterns and pattern.name not in arguments.patterns:
            continue
        if not pattern.there:
            print(f"| {pattern.name} | {pattern.needs} is not installed | | | |", flush=True)
            continue
        for mistake, wanted in {"": "", **({} if SMOKE else pattern.mistakes)}.items():
            start = time.monotonic()
            # a right script is right on GPUs, too
            done = look(pattern, mistake, arguments.ranks, gpus=not mistake)
            keys = [finding.key for finding in [*done.mistakes, *done.gpu_findings]] + (
                ["fails"] if done.traceback else []
            )
            well = wanted in keys if mistake else not keys
            missed += not well
            print(
                f"| {pattern.name} | {mistake or '(right)'} | {'yes' if well else '**NO**'} | "
                f"{', '.join(keys)} | {time.monotonic() - start:.0f} |",
                flush=True,
            )
    for name in public.names():
        if not arguments.patterns or name in arguments.patterns:
            missed += public.missed(name, arguments.mistake, arguments.show)
    return int(missed > 0)

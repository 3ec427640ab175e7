"""How an item tells what it found: a line of JSON for each, at once, so that a stopped item has told what it had."""

import json
import os
import sys

from gpu_plan import NOTHING


def _write(**fact):
    with open(os.environ["GPU_TOLD"], "a") as file:
        file.write(json.dumps(fact) + "\n")


def figure(name, value, unit=""):
    """A number with its unit, or a word."""
    value = float(f"{value:.4g}") if isinstance(value, float) else value
    print(f"{name}: {value} {unit}", flush=True)
    _write(figure=name, value=value, unit=unit)


def failure(name, text):
    """What went wrong, with the whole text of it."""
    print(f"FAILED: {name}\n{text}", flush=True)
    _write(failure=name, text=text)


def lacking(why):
    """This machine lacks something: say it, and end."""
    print(why, flush=True)
    sys.exit(NOTHING)

"""The scripts of `patterns/`, the mistakes to plant in each, and what the clinic is to find."""

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("patterns")


@dataclass(frozen=True)
class Pattern:
    name: str  # of the script
    mistakes: dict  # {MISTAKE: the key of what is to be found}
    launcher: str = "torchrun"
    ranks: int | None = None  # None: as many as are asked for
    needs: str = "torch"

    @property
    def script(self):
        return FOLDER / f"{self.name}.py"

    @property
    def there(self):
        return importlib.util.find_spec(self.needs) is not None


PATTERNS = (
    Pattern(
        "by_hand",
        {
            "no broadcast": "start",
            "uneven": "mean of means",
            "same rows": "same rows",
            "sum": "sum",
            "no zero_grad": "no zero_grad",
            "clip first": "clip first",
            "last layer": "part own",
            "early": "hang",
        },
    ),
    Pattern(
        "ddp_resnet",
        {
            "no sampler": "same rows",
            "no set_epoch": "set_epoch",
            "not through ddp": "alone",
            "buffers": "buffers",
            "rate": "rate",
            "rank 0 reduces": "hang",
        },
    ),
    Pattern(
        "min_gpt",
        {
            "no sampler": "whole data",
            "no set_epoch": "set_epoch",
            "never in step": "alone",
            "padding": "mean of means",
            "divided twice": "divided twice",
            "no zero_grad": "no zero_grad",
            "rank 0 saves": "hang",
        },
    ),
    Pattern(
        "lightning_fit",
        {
            "no sampler": "same rows",
            "other start": "start",
            "sum": "sum",
            "divided twice": "divided twice",
            "no zero_grad": "no zero_grad",
            "rate": "rate",
            "rank 0 logs": "crossed",
        },
        needs="lightning",
    ),
    Pattern(
        "accelerate_train",
        {
            "no sampler": "same rows",
            "not prepared": "alone",
            "not through model": "alone",
            "divided twice": "divided twice",
            "no zero_grad": "no zero_grad",
            "rate": "rate",
            "rank 0 gathers": "hang",
        },
        needs="accelerate",
    ),
    Pattern(
        "horovod_train",
        {
            "no sampler": "whole data",
            "no set_epoch": "set_epoch",
            "no broadcast": "start",
            "not wrapped": "own",
            "sum": "sum",
            "rate": "rate",
            "rank 0 reduces": "hang",
        },
        launcher="horovodrun",
        needs="horovod",
    ),
    Pattern(
        "fsdp2",
        {
            "no sampler": "same rows",
            "no set_epoch": "set_epoch",
            "sum": "sum",
            "divided twice": "divided twice",
            "no zero_grad": "no zero_grad",
            "rate": "rate",
            "rank 0 looks": "crossed",
        },
    ),
    Pattern("data_parallel", {"no zero_grad": "no zero_grad", "divided": "factor"}, ranks=1),
)


def look(pattern, mistake="", ranks=2, patience_s=6, gpus=False):
    """Return the conclusion of the clinic on a pattern with this mistake.

    With the third question, where `gpus`.
    """
    from manyhands.clinic.conclude import conclude
    from manyhands.clinic.visit import rehearsed, visit

    before = os.environ.get("MISTAKE")
    os.environ["MISTAKE"] = mistake
    try:
        outcome = visit(
            pattern.script,
            ranks=pattern.ranks or ranks,
            launcher=pattern.launcher,
            patience_s=patience_s,
        )
        if gpus:
            rehearsed(outcome, pattern.script)
        return conclude(outcome)
    finally:
        os.environ.pop("MISTAKE") if before is None else os.environ.update(MISTAKE=before)

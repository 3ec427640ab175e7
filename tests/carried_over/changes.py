"""All that has to be changed in a ChainerMN program.

`python tests/carried_over/changes.py` writes the programs of this folder from those in
`originals/`, and both side by side into docs/CHAINERMN.md.
"""

import difflib
import re
from pathlib import Path

HERE = Path(__file__).parent
DOC = HERE.parents[1] / "docs" / "CHAINERMN.md"
PROGRAMS = ["figure3", "figure5", "figure6", "mlp", "encoder_decoder", "parallel_convolution"]
IMPORTS = {
    "import chainer\n": "import torch\n",
    "import chainer.functions as F\n": "import torch.nn.functional as F\n",
    "import chainer.links as L\n": "from torch import nn\n",
    "import chainermn\n": (
        "from manyhands import functions, links\nfrom manyhands.comm import create_communicator\n"
    ),
    "from numpy import": "from torch import",
    'chainermn.create_communicator("naive")': "create_communicator()",
    "chainermn.functions.": "functions.",
    "chainermn.links.": "links.",
}
LAYERS = {
    "chainer.Chain": "nn.Module",
    'self.add_link("': 'self.add_module("',
    "L.Linear(": "nn.Linear(",
    "L.EmbedID(": "nn.Embedding(",
    "L.NStepLSTM(N_LAYERS, N_UNITS, N_UNITS, 0)": "nn.LSTM(N_UNITS, N_UNITS, N_LAYERS)",
    "L.Convolution2D(": "nn.Conv2d(",
    "pad=1": "padding=1",
    ".W.grad": ".weight.grad",
    ".b.grad": ".bias.grad",
}
NAMES = {
    "F.softmax_cross_entropy(": "F.cross_entropy(",
    "F.concat(": "torch.cat(",
    "F.mean(": "torch.mean(",
    "chainer.optimizers.SGD(lr=0.5).setup(model)": "torch.optim.SGD(model.parameters(), lr=0.5)",
    "model.cleargrads()": "model.zero_grad()",
    "optimizer.update()": "optimizer.step()",
    "loss.array": "loss.detach()",
}


def carry_over(text):
    """A ChainerMN program with these changes, and without imports that it does not use."""
    for old, new in (IMPORTS | LAYERS | NAMES).items():
        text = text.replace(old, new)
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not _is_unused(line, lines)).replace(
        "from manyhands import functions, links\n", _used(text)
    )


def _is_unused(line, lines):
    named = re.fullmatch(r"import (torch|torch\.nn\.functional as (F))\n", line)
    return bool(named) and not any(
        re.search(rf"\b{named[2] or named[1]}\.", other) for other in lines if "import" not in other
    )


def _used(text):
    names = [name for name in ("functions", "links") if re.search(rf"\b{name}\.", text)]
    return f"from manyhands import {', '.join(names)}\n"


def side_by_side(original, ours):
    """The whole program, `-` before what it was and `+` before what it is now."""
    lines = [
        line
        for line in difflib.ndiff(original.splitlines(), ours.splitlines())
        if not line.startswith("?")
    ]
    return "\n".join((line[0] + line[2:]).rstrip() for line in lines)


def documented(doc):
    """The document with each block `<!-- program: NAME -->` ...

    `<!-- /program -->` written anew.
    """

    def block(match):
        original, ours = (
            HERE / "originals" / f"{match[1]}.py",
            (HERE / f"{match[1]}.py").read_text(),
        )
        kind, shown = (
            ("diff", side_by_side(original.read_text(), ours))
            if original.exists()
            else ("python", ours.rstrip())
        )
        return f"<!-- program: {match[1]} -->\n```{kind}\n{shown}\n```\n<!-- /program -->"

    return re.sub(r"<!-- program: (\w+) -->\n.*?<!-- /program -->", block, doc, flags=re.DOTALL)


if __name__ == "__main__":
    for name in PROGRAMS:
        (HERE / f"{name}.py").write_text(
            carry_over((HERE / "originals" / f"{name}.py").read_text())
        )
    DOC.write_text(documented(DOC.read_text()))

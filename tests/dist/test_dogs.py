"""EfficientNet-B2 at full size on a handful of made images: stopped in the middle of an epoch, started again."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from manyhands.cluster.launch.run_script import launch

SCRIPTS = Path(__file__).resolve().parents[2] / "sources" / "scripts"


@pytest.fixture(scope="module")
def dogs(tmp_path_factory):
    """Three breeds, five images each: four for training, the fifth for testing."""
    root, random = tmp_path_factory.mktemp("dogs"), np.random.default_rng(0)
    for breed in ("n1-a", "n2-b", "n3-c"):
        (root / "Images" / breed).mkdir(parents=True)
        for i in range(5):
            pixels = random.integers(0, 256, (10, 12, 3), np.uint8)
            Image.fromarray(pixels).resize((400, 330)).save(root / "Images" / breed / f"{i}.jpg")
    return root


@pytest.mark.timeout(600)
def test_ddp_goes_on_as_if_it_had_not_stopped(dogs, tmp_path):
    def run(name, *more):
        fixed = ("--epochs", "1", "--batch", "4", "--workers", "0")
        result = launch(SCRIPTS / "06_dogs.py", str(dogs), str(tmp_path / name), *fixed, *more, nodes=1, ranks_per_node=2, echo=False, timeout_s=280)
        assert result.returncode == 0, (result.report(), result.output)
        return re.findall(r"^(?:epoch|stopped|done).*", result.output[0], re.M)

    assert run("stopped", "--steps", "2")[-1].startswith("stopped after epoch 1, step 2;")
    ended, straight = run("stopped"), run("straight")
    assert ended[-1].startswith("done; sum of |weights|") and ended[-1] == straight[-1]
    assert ended[0].partition(", accuracy")[0] == straight[0].partition(", accuracy")[0]

"""EfficientNet-B2 at full size on a handful of made images.

It is stopped in the middle of an epoch, and started again.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from warm import Warm

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


@pytest.fixture
def with_keras():
    """The path of a Python that starts warm, with what 06_dogs.py imports."""
    program = Warm(
        "torch",
        "torch._dynamo",
        "torch.distributed.run",
        "keras",
        "PIL.Image",
        "manyhands.data",
        env={"KERAS_BACKEND": "torch"},
    )
    yield str(program.python)
    program.close()


@pytest.mark.timeout(600)
def test_ddp_goes_on_as_if_it_had_not_stopped(dogs, tmp_path, with_keras):
    def run(name, *more):
        fixed = ("--epochs", "1", "--batch", "4", "--workers", "0")
        result = launch(
            SCRIPTS / "06_dogs.py",
            str(dogs),
            str(tmp_path / name),
            *fixed,
            *more,
            nodes=1,
            ranks_per_node=2,
            python=with_keras,
            echo=False,
            timeout_s=280,
        )
        assert result.returncode == 0, (result.report(), result.output)
        return re.findall(r"^(?:epoch|stopped|done).*", result.output[0], re.M)

    assert run("stopped", "--steps", "2")[-1].startswith("stopped after epoch 1, step 2;")
    ended, straight = run("stopped"), run("straight")
    assert ended[-1].startswith("done; sum of |weights|") and ended[-1] == straight[-1]
    assert ended[0].partition(", accuracy")[0] == straight[0].partition(", accuracy")[0]


MIRRORED = """
import importlib.util, sys
import numpy as np
script, dogs, run = sys.argv[1:]
spec = importlib.util.spec_from_file_location("dogs_script", script)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
keras, tf = module.tf.keras, module.tf
whole = module.network(3, None)
photo = next(iter(module.batches(*module.dog_photos(dogs)[:2], 1, epoch=0)))[0]
print("scores", whole(photo).shape, "weights", sum(int(np.prod(weight.shape)) for weight in whole.trainable_variables))

def small(breeds, weights):  # what is tried below is main: a graph of the whole network takes minutes
    layers = keras.layers
    return keras.Sequential([layers.Rescaling(1 / 255, input_shape=(260, 260, 3)), layers.AveragePooling2D(20), layers.Flatten(), layers.Dense(breeds)])

module.network = small
for name, more in (("stopped", ["--steps", "2"]), ("stopped", []), ("straight", [])):
    sys.argv = [script, dogs, f"{run}/{name}", "--epochs", "1", "--batch", "4", *more]
    module.main()
"""


@pytest.mark.timeout(300)
def test_mirrored_goes_on_where_it_stopped(dogs, tmp_path):
    command = [
        sys.executable,
        "-c",
        MIRRORED,
        str(SCRIPTS / "02_dogs.py"),
        str(dogs),
        str(tmp_path),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "scores (1, 3) weights 7705221" in done.stdout
    begun = re.findall(r"^epoch 1, (\d) of 3 steps made", done.stdout, re.M)
    ended = re.findall(r"^(\d) of 3 steps made; sum of .weights. (.*)", done.stdout, re.M)
    assert begun == ["0", "2", "0"] and [made for made, _ in ended] == ["2", "3", "3"]
    assert ended[1] == ended[2] != ended[0]

"""What unit 18 tells of Horovod's, Keras' and PyTorch's ways to go on, and does not run.

Here it runs, in one process each.
"""

import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))


def said(tmp_path, program, **variables):
    """What a program prints that has a process to itself.

    Each has a framework that the others should not see.
    """
    path = tmp_path / "program.py"
    path.write_text(program)
    done = subprocess.run(
        [sys.executable, str(path), str(tmp_path)],
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


# One rank, whose loop is that of many. Gloo, since MPI cannot begin anew in a process.
ONE_RANK = {
    "HOROVOD_CONTROLLER": "gloo",
    "HOROVOD_CPU_OPERATIONS": "gloo",
    "HOROVOD_HOSTNAME": "localhost",
    **{f"HOROVOD_{kind}RANK": "0" for kind in ("", "LOCAL_", "CROSS_")},
    **{f"HOROVOD_{kind}SIZE": "1" for kind in ("", "LOCAL_", "CROSS_")},
}
HOROVOD = """
import torch
import horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError
from horovod.runner.elastic.discovery import HostUpdateResult

hvd.init()
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
weights, events = {}, {12: "lost", 17: "joined", 25: "joined, and looked for"}

@hvd.elastic.run
def train(state):
    at = [step for step, weight in weights.items() if weight == model.weight.sum().item()]
    print("enters at step", state.step, "with the weights of", *at, "noise", torch.rand(1).item())
    while state.step < 30:
        event = events.pop(state.step, "")
        if event == "lost":
            raise HorovodInternalError("a rank is lost")
        if event:
            state.on_hosts_updated(state.step, HostUpdateResult.added)
        if "looked" in event:
            state.check_host_updates()
        optimizer.zero_grad()
        model(torch.ones(4, 2)).sum().backward()
        optimizer.step()
        state.step += 1
        weights[state.step] = model.weight.sum().item()
        if state.step % 10 == 0:
            state.commit()

weights[0] = model.weight.sum().item()
torch.manual_seed(0)
train(hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0))
"""


def test_horovods_loop_rolls_back_for_a_lost_rank_and_not_for_hosts_that_commit_sees(tmp_path):
    lines = [line.split(" noise ") for line in said(tmp_path, HOROVOD, **ONE_RANK)]
    assert [text for text, _ in lines] == [
        "enters at step 0 with the weights of 0",
        "enters at step 10 with the weights of 10",  # a rank was lost at 12
        # hosts came at 17: commit looks for them when it has saved
        "enters at step 20 with the weights of 20",
        # looked for between two commits: numbers go back, weights do not
        "enters at step 20 with the weights of 25",
    ]
    assert len({noise for _, noise in lines}) == 4, "torch's generator is not rolled back"


def test_horovod_does_not_use_a_host_again_on_which_a_worker_died():
    from horovod.runner.elastic.discovery import FixedHosts, HostManager

    manager = HostManager(FixedHosts({"localhost": 2, "node1": 2}))
    manager.update_available_hosts()
    assert manager.current_hosts.count_available_slots() == 4
    manager.blacklist("localhost")  # what its driver does when a worker's exit code is not 0
    manager.update_available_hosts()
    assert (
        manager.current_hosts.available_hosts == {"node1"}
        and manager.current_hosts.count_available_slots() == 2
    )


KERAS = """
import os, sys
import numpy as np
sys.modules["tensorflow"] = None  # Keras would import it, for nothing
import keras
from manyhands.elastic.mortal import in_process, kill_me

rows = np.random.default_rng(0)
x, y = rows.normal(size=(64, 4)).astype("float32"), rows.normal(size=(64, 1)).astype("float32")

class Epochs(keras.callbacks.Callback):
    def __init__(self, dies):
        super().__init__()
        self.seen, self.dies = [], dies

    def on_epoch_begin(self, epoch, logs=None):
        self.seen.append(epoch)
        if epoch == self.dies:
            kill_me()

def fit(folder, dies, shuffle, dropout):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Dense(8, activation="tanh"), keras.layers.Dropout(dropout), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01), "mse")
    epochs = Epochs(dies)
    backup = [keras.callbacks.BackupAndRestore(folder)] if folder else []
    model.fit(x, y, batch_size=8, epochs=5, verbose=0, shuffle=shuffle, callbacks=[*backup, epochs])
    return epochs.seen, int(model.optimizer.iterations), [weight.tobytes() for weight in model.get_weights()]

for name, shuffle, dropout in (("neither", False, 0.0), ("shuffle", True, 0.0), ("dropout", False, 0.5)):
    folder = os.path.join(sys.argv[1], name)
    calm = in_process(fit, None, None, shuffle, dropout)
    dead = in_process(fit, folder, 3, shuffle, dropout)
    again = in_process(fit, folder, None, shuffle, dropout)
    print(name, dead.killed_by, again.value[:2] if again.value else again, calm.value[1], "same" if calm.value[2] == again.value[2] else "not the same")
"""


def test_keras_goes_on_after_the_last_whole_epoch_but_not_with_the_same_noise(tmp_path):
    printed = said(tmp_path, KERAS, KERAS_BACKEND="torch", CUDA_VISIBLE_DEVICES="")
    assert printed == [
        "neither SIGKILL ([3, 4], 40) 40 same",
        "shuffle SIGKILL ([3, 4], 40) 40 not the same",
        "dropout SIGKILL ([3, 4], 40) 40 not the same",
    ]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sampler_that_is_given_the_endless_order_and_a_start_goes_on_where_the_other_was(workers):
    import torch
    from torch.utils.data import DataLoader

    from manyhands.elastic.job import IMAGES, endless

    def batches(start, count):
        loader = DataLoader(
            torch.arange(IMAGES),
            batch_size=16,
            sampler=endless(start, count * 16),
            num_workers=workers,
        )
        return [batch.tolist() for batch in loader]

    assert batches(4 * 16, 16) == batches(0, 20)[4:]  # over the border of an epoch

"""Train on the digits with MultiWorkerMirroredStrategy and Model.fit, with one process for each worker. TF_CONFIG tells each process the addresses of all, and
which of them it is:

    TF_CONFIG='{"cluster": {"worker": ["HOST0:PORT", "HOST1:PORT"]}, "task": {"type": "worker", "index": 0}}' python 07_train.py FOLDER    (and index 1 on HOST1)

All workers must be able to see FOLDER. After each epoch, the chief writes a backup to it, and workers that are started again continue from this backup. After the
last epoch, it is removed. `--die 4` kills the chief when epoch 4 begins. 07_train.sbatch starts such a training run on Slurm.
"""

import argparse
import os
import signal

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # Model.fit with this strategy works with Keras 2
import tensorflow as tf  # noqa: E402

from manyhands import track  # noqa: E402

EPOCHS = track.STEPS * track.ROWS // track.DIGITS


def network():
    """Return the track's network in Keras, with its initial weights and the penalty on all of them."""
    penalty = tf.keras.regularizers.L2(track.DECAY / 2)
    options = {"kernel_regularizer": penalty, "bias_regularizer": penalty}
    inputs, hidden, outputs = track.SIZES
    layers = [tf.keras.layers.Dense(hidden, "tanh", input_shape=(inputs,), **options), tf.keras.layers.Dense(outputs, **options)]
    model = tf.keras.Sequential(layers)
    model.set_weights([weight.T for weight in track.start()])
    return model


class Die(tf.keras.callbacks.Callback):
    """Kill this process when an epoch begins, as if the machine had lost its power."""

    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == self.epoch:
            os.kill(os.getpid(), signal.SIGKILL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--die", type=int, default=-1, metavar="EPOCH")
    options = parser.parse_args()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # comes first, because no other operation may run before it
    tf.keras.backend.set_floatx("float64")  # for Keras' own numbers, too, such as the factor of the penalty and the learning rate
    place = strategy.cluster_resolver
    me, chief = f"{place.task_type} {place.task_id}", place.task_type == "chief" or "chief" not in place.cluster_spec().jobs and place.task_id == 0
    with strategy.scope():
        model = network()
        model.compile(tf.keras.optimizers.SGD(track.RATE), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    callbacks = [tf.keras.callbacks.BackupAndRestore(os.path.join(options.folder, "backup")), *([Die(options.die)] if chief else [])]
    data = tf.data.Dataset.from_tensor_slices(track.data()).batch(track.ROWS)  # the global batch, which is split into one part for each replica
    try:
        history = model.fit(data, epochs=EPOCHS, callbacks=callbacks, verbose=0)
    except tf.errors.OpError as error:
        print(f"{me}: {type(error).__name__}. Start all workers again.", flush=True)
        os._exit(1)  # immediately, because an orderly end would wait for the worker that is lost
    far = track.distance([weight.T for weight in model.get_weights()], track.one_process()[0])
    role = ", the chief" if chief else ""
    print(f"{me} of {strategy.num_replicas_in_sync}{role}: epochs {history.epoch[0]} to {history.epoch[-1]}, loss {history.history['loss'][-1]:.4f};",
          f"same weights as one process, to 1e-12: {far < 1e-12}")


if __name__ == "__main__":
    main()

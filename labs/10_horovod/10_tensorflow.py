"""The same training with Horovod and TensorFlow, twice: a loop of its own with a gradient tape, then Keras' fit with callbacks.

    horovodrun -np 4 -H HOST1:2,HOST2:2 python 10_tensorflow.py
    mpirun -n 4 -hosts HOST1:2,HOST2:2 python 10_tensorflow.py    MPICH; Open MPI: -H in place of -hosts
"""

import os
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # Horovod's callbacks know Keras 2 only
import tensorflow as tf
import tf_keras

sys.modules["keras"] = tf_keras  # before Horovod, which imports `keras`
import horovod.tensorflow.keras as hvd_keras
import horovod.tensorflow as hvd
import numpy as np

from manyhands import track
from manyhands.data import shard

tf.get_logger().setLevel("ERROR")
x, y = track.data()


def pin():
    """One GPU for each process; the others are not seen. Before any operation, and without a GPU nothing."""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank() % len(gpus)], "GPU")


def losses(labels, scores):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)


def eager():
    """A loop of one's own: broadcast_variables and DistributedGradientTape."""
    w1, b1, w2, b2 = variables = [tf.Variable((1 - min(hvd.rank(), 1)) * array.T) for array in track.start()]  # zeros, but on rank 0
    hvd.broadcast_variables(variables, root_rank=0)
    mine = shard(track.ROWS, hvd.rank(), hvd.size())

    @tf.function(autograph=False)  # no Python to translate in it: faster to trace
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(losses(y, tf.tanh(x @ w1 + b1) @ w2 + b2)) / track.ROWS
        tape = hvd.DistributedGradientTape(tape, op=hvd.Sum)
        for variable, gradient in zip(variables, tape.gradient(loss, variables)):
            variable.assign_sub(track.RATE * (gradient + track.DECAY * variable))

    for number in range(track.STEPS):
        rows = track.rows(number)
        step(x[rows][mine], y[rows][mine])
    return variables


def keras():
    """Keras' fit: DistributedOptimizer and callbacks. Each rank is given its own rows of each batch, batch after batch."""
    dense = tf_keras.layers.Dense
    model = tf_keras.Sequential([dense(track.SIZES[1], "tanh", dtype="float64", input_shape=track.SIZES[:1]), dense(track.SIZES[2], dtype="float64")])
    if hvd.rank() == 0:
        model.set_weights([array.T for array in track.start()])
    hvd.broadcast_variables(model.variables, root_rank=0)  # the callback does it too, but only after the first batch
    optimizer = tf_keras.optimizers.SGD(track.RATE, weight_decay=np.float64(track.DECAY))  # a plain float becomes a float32
    model.compile(hvd_keras.DistributedOptimizer(optimizer, op=hvd_keras.Sum),
                  lambda labels, scores: tf.reduce_sum(losses(tf.cast(tf.reshape(labels, [-1]), tf.int64), scores)) / track.ROWS)
    mine = np.arange(track.ROWS)[shard(track.ROWS, hvd.rank(), hvd.size())]
    rows = np.concatenate([batch * track.ROWS + mine for batch in range(track.DIGITS // track.ROWS)])
    epochs = track.STEPS * track.ROWS // track.DIGITS
    callbacks = [hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0), hvd_keras.callbacks.MetricAverageCallback()]
    model.fit(x[rows], y[rows], batch_size=len(mine), shuffle=False, epochs=epochs, callbacks=callbacks, verbose=0)
    return [tf.constant(array) for array in model.get_weights()]


def main():
    hvd.init()
    pin()
    reference = track.one_process()[0]
    for way in (eager, keras):
        far = track.distance([tf.transpose(array).numpy() for array in way()], reference)
        print(f"rank {hvd.rank()} of {hvd.size()}, {way.__name__}: weights of one process, to 1e-12: {far < 1e-12}")
    hvd.shutdown()


if __name__ == "__main__":
    main()

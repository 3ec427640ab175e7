"""Train on the digits with parameter servers in TensorFlow: a chief, workers and servers, one process for each. TF_CONFIG tells each where all are, and which one it is:

    TF_CONFIG='{"cluster": {"chief": ["HOST0:PORT"], "worker": ["HOST1:PORT", "HOST2:PORT"], "ps": ["HOST3:PORT"]}, "task": {"type": "chief", "index": 0}}' \\
        python 08_parameter_server.py FOLDER    (and likewise worker 0, worker 1 and ps 0)

Workers and servers wait for work, and do not end by themselves. The chief has the program: it trains synchronously, leaves the weights in FOLDER, and trains
asynchronously. --cut lets the servers keep parts of large variables; --fit trains with Model.fit; --kill kills worker 1 in the midst of the asynchronous
training (the chief and worker 1 must be on one machine then).
"""

import argparse
import os
import signal
import time
from pathlib import Path

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # Model.fit with this strategy works with Keras 2
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from manyhands import track  # noqa: E402
from manyhands.data import shard  # noqa: E402
from manyhands.quiet import quietly  # noqa: E402

tf.get_logger().setLevel("FATAL")  # the coordinator's lines about a lost worker


def serve(place):
    """What workers and servers do: keep variables, wait for operations, run them. Never returns."""
    tf.distribute.Server(place.cluster_spec(), job_name=place.task_type, task_index=place.task_id, protocol="grpc").join()


def serve_until_killed(place, number_file):
    """The same in a process of its own, whose number the chief finds in a file. This one waits for its end, as Slurm or Kubernetes would."""
    child = os.fork()
    if child == 0:
        number_file.write_text(str(os.getpid()))
        serve(place)
    _, status = os.waitpid(child, 0)
    print(f"killed by signal {os.WTERMSIG(status)}")


def kill(number):
    """Kill a process, and wait until it is gone."""
    os.kill(number, signal.SIGKILL)
    try:
        while True:
            os.kill(number, 0)
            time.sleep(0.01)
    except ProcessLookupError:
        pass


def make_variables(strategy):
    """The track's weights on the servers, and a list of their parts."""
    with strategy.scope():
        variables = [tf.Variable(values.T) for values in track.start()]
    return variables, [part for variable in variables for part in getattr(variable, "variables", [variable])]


def show_places(parts):
    """How many bytes each server has, and the shapes of its parts."""
    kept = {}
    for part in parts:
        kept.setdefault(tf.DeviceSpec.from_string(part.device).task, []).append(part.shape)
    for server, shapes in sorted(kept.items()):
        print(f"ps {server} keeps {sum(8 * shape.num_elements() for shape in shapes):>5} bytes:", *map(tuple, shapes))


def batches(workers):
    """For each step the rows of each worker."""
    x, y = track.data()
    for step in range(track.STEPS):
        rows = track.rows(step)
        yield [(tf.constant(x[rows][mine]), tf.constant(y[rows][mine])) for mine in (shard(track.ROWS, worker, workers) for worker in range(workers))]


def losses(variables, x, y):
    w1, b1, w2, b2 = (tf.convert_to_tensor(variable) for variable in variables)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.tanh(x @ w1 + b1) @ w2 + b2)


def gradients(variables, parts, x, y):
    """Of a part of the mean loss: the sum over these rows, divided by the rows of all."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(losses(variables, x, y)) / track.ROWS
    return tape.gradient(loss, parts)


def train_synchronously(variables, parts, coordinator, workers):
    """Workers compute gradients; the chief waits for all of them, adds up, and changes the variables once in a step."""

    @tf.function
    def push(x, y):
        return gradients(variables, parts, x, y)

    @tf.function
    def update(pushed):
        for part, *each in zip(parts, *pushed):
            part.assign_sub(track.RATE * (tf.add_n(each) + track.DECAY * part))

    for step in batches(workers):
        update(coordinator.fetch([coordinator.schedule(push, args) for args in step]))


def train_asynchronously(variables, parts, coordinator, workers, updates, kill_worker):
    """Workers compute gradients and change the variables themselves, as soon as they can: nobody waits for anybody."""

    @tf.function
    def step_of_one(x, y):
        for part, gradient in zip(parts, gradients(variables, parts, x, y)):
            part.assign_sub(track.RATE * (gradient + track.DECAY / workers * part))
        updates.assign_add(1)

    for number, step in enumerate(batches(workers)):
        if number == track.STEPS // 2 and kill_worker:
            coordinator.join()  # nothing is under way: an update that a worker has made, but not reported yet, would be made again
            kill_worker()
            print(f"asynchronous: worker 1 was killed after {updates.numpy()} updates")
        for args in step:
            coordinator.schedule(step_of_one, args)
    coordinator.join()


def fit(strategy):
    """The same network with Model.fit: asynchronous, each step by some worker, which makes its data itself."""
    with strategy.scope():
        model = track.keras_network()
        model.compile(tf.keras.optimizers.SGD(track.RATE), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = tf.keras.utils.experimental.DatasetCreator(
        lambda context: tf.data.Dataset.from_tensor_slices(track.data()).shuffle(track.DIGITS, seed=0).repeat().batch(track.ROWS))
    model.fit(data, epochs=5, steps_per_epoch=12, verbose=0)
    loss = model.evaluate(data, steps=track.DIGITS // track.ROWS, verbose=0)
    print(f"Model.fit: {model.optimizer.iterations.numpy()} steps; Model.evaluate: loss below 0.5: {loss < 0.5}")


def chief(place, options):
    """The program. The strategy is made before any operation."""
    tasks = place.cluster_spec().as_dict()
    cut = tf.distribute.experimental.partitioners.MinSizePartitioner(min_shard_bytes=4096, max_shards=len(tasks["ps"]))
    strategy = tf.distribute.ParameterServerStrategy(place, variable_partitioner=cut if options.cut else None)
    coordinator, workers = tf.distribute.coordinator.ClusterCoordinator(strategy), len(tasks["worker"])
    variables, parts = make_variables(strategy)
    show_places(parts)
    train_synchronously(variables, parts, coordinator, workers)
    weights = [tf.convert_to_tensor(variable).numpy().T for variable in variables]
    np.savez(Path(options.folder, "weights.npz"), *weights)
    print(f"synchronous: same weights as one process, to 1e-12: {track.distance(weights, track.one_process()[0]) < 1e-12}")

    with quietly():  # TensorFlow's own lines about a lost worker; an error is shown
        go_on_asynchronously(strategy, coordinator, workers, options)
    if options.fit:
        fit(strategy)


def go_on_asynchronously(strategy, coordinator, workers, options):
    variables, parts = make_variables(strategy)
    with strategy.scope():
        updates = tf.Variable(0)
    number_file = Path(options.folder, "worker")
    train_asynchronously(variables, parts, coordinator, workers, updates, options.kill and (lambda: kill(int(number_file.read_text()))))
    loss = tf.reduce_mean(losses(variables, *track.data())).numpy()
    print(f"asynchronous: {updates.numpy()} updates; loss below 0.5: {loss < 0.5}", flush=True)
    if options.kill:
        os._exit(0)  # at once: an orderly end would wait for the worker that has gone


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    for name in ("--cut", "--fit", "--kill"):
        parser.add_argument(name, action="store_true")
    options = parser.parse_args()
    place = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if place.task_type == "chief":
        chief(place, options)
    elif options.kill and (place.task_type, place.task_id) == ("worker", 1):
        serve_until_killed(place, Path(options.folder, "worker"))
    else:
        serve(place)


if __name__ == "__main__":
    main()

"""Train on the digits with parameter servers in TensorFlow, with one process for the chief and for each worker and server. TF_CONFIG tells each process the
addresses of all, and which of them it is:

    TF_CONFIG='{"cluster": {"chief": ["HOST0:PORT"], "worker": ["HOST1:PORT", "HOST2:PORT"], "ps": ["HOST3:PORT"]}, "task": {"type": "chief", "index": 0}}' \\
        python 08_parameter_server.py FOLDER    (and the same for worker 0, worker 1 and ps 0)

Workers and servers wait for work, and do not end by themselves. The chief has the program, which trains synchronously, saves the weights in FOLDER, and then
trains asynchronously. With --cut, the servers keep parts of large variables. With --fit, the script also trains with Model.fit. With --kill, it kills worker 1
in the middle of asynchronous training, for which the chief and worker 1 must be on one machine.
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

tf.get_logger().setLevel("FATAL")  # hides the coordinator's messages about a lost worker


def serve(place):
    """Run a worker or a server, which keeps variables, waits for operations and runs them. This function never returns."""
    tf.distribute.Server(place.cluster_spec(), job_name=place.task_type, task_index=place.task_id, protocol="grpc").join()


def serve_until_killed(place, number_file):
    """Serve in a child process, whose number the chief finds in a file, and wait for its end, as Slurm or Kubernetes would."""
    child = os.fork()
    if child == 0:
        number_file.write_text(str(os.getpid()))
        serve(place)
    _, status = os.waitpid(child, 0)
    print(f"killed by signal {os.WTERMSIG(status)}")


def kill(number):
    """Kill a process, and wait until it has ended."""
    os.kill(number, signal.SIGKILL)
    try:
        while True:
            os.kill(number, 0)
            time.sleep(0.01)
    except ProcessLookupError:
        pass


def make_variables(strategy):
    """Create the track's weights on the servers, and return them with a list of their parts."""
    with strategy.scope():
        variables = [tf.Variable(values.T) for values in track.start()]
    return variables, [part for variable in variables for part in getattr(variable, "variables", [variable])]


def show_places(parts):
    """Print how many bytes each server has, and the shapes of its parts."""
    kept = {}
    for part in parts:
        kept.setdefault(tf.DeviceSpec.from_string(part.device).task, []).append(part.shape)
    for server, shapes in sorted(kept.items()):
        print(f"ps {server} keeps {sum(8 * shape.num_elements() for shape in shapes):>5} bytes:", *map(tuple, shapes))


def batches(workers):
    """Yield for each step the rows of each worker."""
    x, y = track.data()
    for step in range(track.STEPS):
        rows = track.rows(step)
        yield [(tf.constant(x[rows][mine]), tf.constant(y[rows][mine])) for mine in (shard(track.ROWS, worker, workers) for worker in range(workers))]


def losses(variables, x, y):
    w1, b1, w2, b2 = (tf.convert_to_tensor(variable) for variable in variables)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.tanh(x @ w1 + b1) @ w2 + b2)


def gradients(variables, parts, x, y):
    """Return the gradients of a part of the mean loss, which is the sum over these rows, divided by the rows of all workers."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(losses(variables, x, y)) / track.ROWS
    return tape.gradient(loss, parts)


def train_synchronously(variables, parts, coordinator, workers):
    """Let workers compute gradients. The chief waits for all of them, adds them up, and changes the variables once in a step."""

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
    """Let workers compute gradients and change the variables themselves, as soon as they can, so that no worker waits for another one."""

    @tf.function
    def step_of_one(x, y):
        for part, gradient in zip(parts, gradients(variables, parts, x, y)):
            part.assign_sub(track.RATE * (gradient + track.DECAY / workers * part))
        updates.assign_add(1)

    for number, step in enumerate(batches(workers)):
        if number == track.STEPS // 2 and kill_worker:
            coordinator.join()  # so that no call is running, because an update that a worker has made but not reported yet would be made again
            kill_worker()
            print(f"asynchronous: worker 1 was killed after {updates.numpy()} updates")
        for args in step:
            coordinator.schedule(step_of_one, args)
    coordinator.join()


def fit(strategy):
    """Train the same network with Model.fit, asynchronously. Each step runs on one of the workers, which makes its data itself."""
    with strategy.scope():
        model = track.keras_network()
        model.compile(tf.keras.optimizers.SGD(track.RATE), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = tf.keras.utils.experimental.DatasetCreator(
        lambda context: tf.data.Dataset.from_tensor_slices(track.data()).shuffle(track.DIGITS, seed=0).repeat().batch(track.ROWS))
    model.fit(data, epochs=5, steps_per_epoch=12, verbose=0)
    loss = model.evaluate(data, steps=track.DIGITS // track.ROWS, verbose=0)
    print(f"Model.fit: {model.optimizer.iterations.numpy()} steps; Model.evaluate: loss below 0.5: {loss < 0.5}")


def chief(place, options):
    """Run the program of the chief, which creates the strategy before any operation."""
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

    with quietly():  # hides TensorFlow's own messages about a lost worker, but shows an error
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
        os._exit(0)  # immediately, because an orderly end would wait for the worker that is lost


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

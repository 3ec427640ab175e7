# %% [markdown] unit={"minutes": 50, "ranks": 3, "framework": "tensorflow", "title": "MultiWorkerMirroredStrategy"}
# # 07 Lab: one model on several machines
#
# You write what `MultiWorkerMirroredStrategy` leaves to you, namely the role of each process, the scale of the loss, the share of the data that each worker
# sees, and the checkpoint. At the end, you can
#
# * write a correct `TF_CONFIG` for any layout of hosts and roles.
# * train with `Model.fit` on several workers, with the same steps and the same weights as a single process.
# * scale the losses and the penalty so that the parts of all workers add up to the objective of a single process.
# * predict which worker sees which sample under each auto-shard policy, and write an input pipeline that gives each sample to exactly one worker.
# * save a checkpoint on several workers so that only one file remains.
#
# **Before:** the tutorial of this unit, or as much `tf.distribute` as it covers. **Minutes:** 50 · **Ranks:** 3 workers · **Points:** 16.
#
# Cells that begin with `%%px` run on all three workers, while the others run in this kernel. If a mistake makes the workers wait for each other, the cluster
# notices it, reports which worker is waiting for which, and heals itself. It then runs the cells marked `--setup` again. The exercises do not depend on each
# other. Below each check, you see what it prints when the answer is right.

# %% tags=["setup"]
import json

from manyhands import Cluster, hint
from manyhands.checks import multiworker as check

cluster = Cluster(nodes=3, ranks_per_node=1, framework="tensorflow")

# %% tags=["setup"]
# %%px --setup
import json
import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"    # makes tf.keras use tf_keras, see the tutorial
import tensorflow as tf
from manyhands.cluster.addresses import exchange

tf.get_logger().setLevel("ERROR")
rank, workers = int(os.environ["RANK"]), exchange()
os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers},
                                      "task": {"type": "worker", "index": rank}})
strategy = tf.distribute.MultiWorkerMirroredStrategy()

# %% [markdown]
# ## 1. TF_CONFIG for any layout
#
# A launcher starts some processes, which are numbered 0, 1, 2, ... The launcher knows the host of each process and the number of processes of each kind. If
# several processes share a host, each of them needs its own port.
#
# For example, `tf_config(["a", "a", "b"], 5000, {"chief": 1, "worker": 2}, 2)` returns the text for worker 1, which is on host b:
#
#     {"cluster": {"chief": ["a:5000"], "worker": ["a:5001", "b:5000"]}, "task": {"type": "worker", "index": 1}}
#
# *Difficulty ●●○, 10 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Indices number the processes of one kind, whereas ports number the processes on one host. For more help, run `hint("07-config")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="config"
def tf_config(hosts: list[str], first_port: int, roles: dict[str, int], number: int) -> str:
    """Return the text of TF_CONFIG for process `number`.

    `hosts` holds the host of each process, and `roles` the number of processes of each
    kind. The processes are numbered in the order of `roles`. On each host, the first one
    gets `first_port`, the next one `first_port + 1`, and so on.
    """
    ### BEGIN SOLUTION
    cluster, used = {kind: [] for kind in roles}, {}
    kinds = [kind for kind, count in roles.items() for _ in range(count)]
    for process, (host, kind) in enumerate(zip(hosts, kinds)):
        if process == number:
            task = {"type": kind, "index": len(cluster[kind])}
        cluster[kind].append(f"{host}:{first_port + used.get(host, 0)}")
        used[host] = used.get(host, 0) + 1
    return json.dumps({"cluster": cluster, "task": task})
    ### END SOLUTION

# %% tags=["check"] grade_id="config-check" points=3
check.config(tf_config)

# %% [markdown]
# ## 2. Model.fit on all workers
#
# All workers call your function with the same arrays `x`, which holds all samples, and `y`, which holds their classes. Train a model from `make_model()` with
# `Model.fit` and plain SGD, for `epochs` epochs. In each step, *all* workers together use `global_batch` samples, in their stored order. The workers must end
# with the same weights as a single process that starts with the chief's weights.
#
# The model's outputs are scores and not probabilities. The batch can be divided evenly among the workers. The set-up cell has defined `strategy`.
#
# *Difficulty ●●○, 7 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Each worker's `make_model()` draws different weights. What makes all models start with the same weights? For more help, run `hint("07-fit")` in a separate
# cell.
# </details>

# %% tags=["solution"] grade_id="fit"
# %%px --setup
def train_with_fit(make_model, x, y, global_batch: int, epochs: int,
                   rate: float) -> tf.keras.Model:
    """Train with Model.fit and return the model. All workers call this function."""
    ### BEGIN SOLUTION
    with strategy.scope():
        model = make_model()
        model.compile(tf.keras.optimizers.SGD(rate),
                      tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(global_batch), epochs=epochs,
              verbose=0)
    return model
    ### END SOLUTION

# %% tags=["check"] grade_id="fit-check" points=2
check.fit(cluster, "train_with_fit")

# %% [markdown]
# ## 3. A worker's part of the objective
#
# For a batch of B samples, a single process would minimise the mean of the losses plus a penalty on the weights:
#
# $$ J(w) = \frac{1}{B} \sum_i \ell_i(w) + \frac{\lambda}{2} \sum_j w_j^2 $$
#
# `strategy.run` calls your function on every worker with the worker's own shard. The returned values and their gradients are **added up** over the workers,
# however many there are. A shard may be empty.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# How many times does the sum contain the penalty? `tf.nn.scale_regularization_loss` knows how many replicas there are. For more help, run `hint("07-loss")` in
# a separate cell.
# </details>

# %% tags=["solution"] grade_id="loss"
# %%px --setup
def part_of_objective(example_losses: tf.Tensor, weights: list[tf.Variable], decay: float,
                      global_batch: int) -> tf.Tensor:
    """Return this worker's part of J, a single number. `example_losses` has one loss for
    each sample of this worker, `global_batch` is B, and `decay` is λ."""
    ### BEGIN SOLUTION
    penalty = decay * tf.add_n([tf.nn.l2_loss(weight) for weight in weights])
    return (tf.reduce_sum(example_losses) / global_batch
            + tf.nn.scale_regularization_loss(penalty))
    ### END SOLUTION

# %% tags=["check"] grade_id="loss-check" points=3
check.loss(cluster, "part_of_objective")

# %% [markdown]
# ## 4. Which worker sees which sample?
#
# The data is stored in files. File 0 has `files[0]` samples, file 1 has `files[1]`, and so on, and the samples are numbered consecutively across all files,
# starting at 0. The data is read in this order and batched by the *global* batch size. For each of the policies `OFF`, `DATA` and `FILE`, predict which samples
# `experimental_distribute_dataset` gives to each worker.
#
# The batch size need not be divisible by the number of workers. The last batch may be smaller than the others. In that case, its own size decides how it is
# split.
#
# *Difficulty ●●○, 10 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# In the tutorial, a batch of 4 on two workers was split into 2 and 2. On three workers, a batch of 5 is split into 2, 2 and 1, and a batch of 4, such as a
# smaller last batch, is split into 2, 2 and 0. For more help, run `hint("07-seen")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="seen"
def who_sees(policy: str, files: list[int], global_batch: int,
             workers: int) -> list[list[int]]:
    """Return for each worker the samples that it sees in an epoch, in the order in which it
    sees them. `policy` is "OFF", "DATA" or "FILE"."""
    ### BEGIN SOLUTION
    samples, seen = list(range(sum(files))), [[] for _ in range(workers)]
    for worker, own in enumerate(seen):
        if policy == "OFF":
            own += samples
        elif policy == "FILE":
            for i in range(worker, len(files), workers):
                own += samples[sum(files[:i]):sum(files[:i + 1])]
        else:
            for begin in range(0, len(samples), global_batch):
                batch = samples[begin:begin + global_batch]
                share = -(-len(batch) // workers)
                own += batch[worker * share:(worker + 1) * share]
    return seen
    ### END SOLUTION

# %% tags=["check"] grade_id="seen-check" points=3
check.seen(who_sees)

# %% [markdown]
# ## 5. Your own input
#
# `strategy.distribute_datasets_from_function(f)` calls `f(context)` once on each worker, and in `f` you shard, shuffle and batch the data yourself. The
# `context` provides
#
# * `num_input_pipelines` and `input_pipeline_id`, which tell you how many workers there are, and which of them is calling `f`.
# * `num_replicas_in_sync` and `get_per_replica_batch_size(global_batch)`. A worker with four GPUs has four replicas, and its pipeline supplies one batch after
#   another to them.
#
# All workers receive the same `seed`. In each epoch,
#
# * all workers together see each sample exactly once.
# * the samples are in a shuffled order that changes from epoch to epoch and with the seed. The set of samples that a worker sees changes, too. (Epoch 1 of one
#   seed may have the same order as epoch 0 of a different seed.)
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# If each worker shuffles in its own order and then takes every third sample, what do all workers see together? For more help, run `hint("07-dataset")` in a
# separate cell.
# </details>

# %% tags=["solution"] grade_id="dataset"
# %%px --setup
def make_dataset(context: tf.distribute.InputContext, x, y, global_batch: int, epoch: int,
                 seed: int) -> tf.data.Dataset:
    """Return this worker's batches (x, y) of one epoch. The arrays x and y hold all
    samples."""
    ### BEGIN SOLUTION
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=seed + epoch)
    dataset = dataset.shard(context.num_input_pipelines, context.input_pipeline_id)
    return dataset.batch(context.get_per_replica_batch_size(global_batch))
    ### END SOLUTION

# %% tags=["check"] grade_id="dataset-check" points=3
check.dataset(cluster, "make_dataset")

# %% [markdown]
# ## 6. One checkpoint
#
# All workers call `save`. A checkpoint may hold variables of which each worker has only a part, such as a metric or the mean of a batch norm. Therefore,
# writing a checkpoint is a collective call. However, one file is enough, and two processes must not write the same file.
#
# After the call, the chief's checkpoint must be at `path`, and nothing else may be left, either there or elsewhere. If the folder of `path` does not exist
# yet, TensorFlow creates it.
#
# *Difficulty ●●○, 7 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Every worker writes a checkpoint, but not every worker keeps it. For more help, run `hint("07-save")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="save"
# %%px --setup
import tempfile


def save(checkpoint: tf.train.Checkpoint, path: str, chief: bool, worker: int) -> None:
    """Write the checkpoint with `checkpoint.write(...)`, so that only the chief's is kept,
    at `path`. All workers call this function."""
    ### BEGIN SOLUTION
    if chief:
        checkpoint.write(path)
    else:
        with tempfile.TemporaryDirectory() as folder:
            checkpoint.write(os.path.join(folder, "checkpoint"))
    ### END SOLUTION

# %% tags=["check"] grade_id="save-check" points=2
check.save(cluster, "save")

# %% [markdown]
# ## All together
#
# Units 01 to 10 share one task, in which a network trains on handwritten digits for 60 steps with batches of 250 rows. With your part of the objective, the
# network trains on three workers, which have 84, 84 and 82 of the 250 rows. The reference is a single process without TensorFlow. This part is not graded, but
# it works as soon as your function from exercise 3 does.

# %%
# %%px
from manyhands import track

with strategy.scope():
    w1, b1, w2, b2 = weights = [tf.Variable(start.T) for start in track.start()]

def replica_step(x, y):
    with tf.GradientTape() as tape:
        scores = tf.tanh(x @ w1 + b1) @ w2 + b2
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=scores)
        part = part_of_objective(each, weights, track.DECAY, track.ROWS)
    gradients = tf.distribute.get_replica_context().all_reduce("SUM",
                                                               tape.gradient(part, weights))
    for weight, gradient in zip(weights, gradients):
        weight.assign_sub(track.RATE * gradient)
    return part

# %%
# %%px
step = tf.function(lambda batch: strategy.reduce("SUM", strategy.run(replica_step, batch),
                                                 axis=None))
data = tf.data.Dataset.from_tensor_slices(track.data()).batch(track.ROWS).repeat(
    track.STEPS * track.ROWS // track.DIGITS)
said = [float(step(batch)) for batch in strategy.experimental_distribute_dataset(data)]
reference, objectives = track.one_process()
far = track.distance([weight.numpy().T for weight in weights], reference)
print(f"objective {said[0]:.4f} to {said[-1]:.4f}, one process {objectives[-1]:.4f}; same "
      f"weights to 1e-12: {far < 1e-12}")

# %% [markdown]
# ## As a script
#
# The script [07_train.py](07_train.py), next to this lab, trains the same network with `Model.fit`. It is run by two processes that differ only in their
# `TF_CONFIG`, and it keeps a backup in a folder that all workers can see. If you run `sbatch 07_train.sbatch FOLDER` on Slurm, the file
# [07_train.sbatch](07_train.sbatch) writes `TF_CONFIG` from the data that Slurm provides. The next cell shows nothing for up to a minute, because two new
# processes import TensorFlow.

# %%
import tempfile

with tempfile.TemporaryDirectory() as folder:
    run = cluster.launch("07_train.py", folder, with_="tf_config", tasks={"worker": 2},
                         timeout_s=300)

# %% [markdown]
# ## Where to go on
#
# * Try a mistake. In `replica_step` of *All together*, take the mean over the worker's own rows with
#   `part = tf.reduce_mean(each) + tf.nn.scale_regularization_loss(track.DECAY * tf.add_n([tf.nn.l2_loss(w) for w in weights]))`. Then run both cells of *All
#   together* again, and look at the objective and at the comparison of the weights.
# * Unit 08 covers parameter servers, with which workers need not wait for each other. Unit 18 covers training that continues when a worker is lost.
#
# **References.** TensorFlow tutorial, [Multi-worker training with Keras](https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras) · TensorFlow
# tutorial, [Distributed input](https://www.tensorflow.org/tutorials/distribute/input)

# %%
cluster.stop()

# %% [markdown] unit={"minutes": 50, "ranks": 3, "framework": "tensorflow", "title": "MultiWorkerMirroredStrategy"}
# # 07 Lab: one model on several machines
#
# You write what `MultiWorkerMirroredStrategy` leaves to you: who is who, how the loss is scaled, who sees which sample, and who keeps the checkpoint. At the
# end you can
#
# * write a correct `TF_CONFIG` for any layout of hosts and roles;
# * train with `Model.fit` on several workers, with the steps and the weights of one process;
# * scale losses and penalty so that the parts of all workers add up to the objective of one process;
# * predict who sees which sample under each auto-shard policy, and write an input pipeline of your own that deals out each sample once;
# * save a checkpoint on several workers, and leave one file.
#
# **Before:** the tutorial of this unit, or as much `tf.distribute` as is in it. **Minutes:** 50. **Ranks:** 3 workers. **Points:** 16.
#
# Cells that begin with `%%px` run on all three workers; the others run in this kernel. A mistake may make the workers wait for each other: the cluster notices,
# says who waits for whom, and heals itself; cells marked `--setup` are run again by it. Each exercise stands on its own. Below each check stands what it says when
# the answer is right.

# %% tags=["setup"]
import json

from manyhands import Cluster, hint
from manyhands.checks import multiworker as check

cluster = Cluster(nodes=3, ranks_per_node=1, framework="tensorflow")

# %% tags=["setup"]
# %%px --setup
import json
import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"    # tf.keras is tf_keras, see the tutorial
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
# A launcher starts some processes, numbered 0, 1, 2, ... It knows the host of each, and how many of each kind there are. Several processes may share a host; then each
# needs a port of its own.
#
# For example, `tf_config(["a", "a", "b"], 5000, {"chief": 1, "worker": 2}, 2)` belongs to worker 1, on host b:
#
#     {"cluster": {"chief": ["a:5000"], "worker": ["a:5001", "b:5000"]}, "task": {"type": "worker", "index": 1}}
#
# *Difficulty ●●○, 10 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# The index counts within a kind, the ports within a host. For more, run `hint("07-config")` in a cell of its own.
# </details>

# %% tags=["solution"] grade_id="config"
def tf_config(hosts: list[str], first_port: int, roles: dict[str, int], number: int) -> str:
    """The text of TF_CONFIG for process `number`.

    `hosts` has the host of each process. `roles` says how many there are of each kind: the
    processes are numbered in this order. On each host the first process gets `first_port`,
    the next one `first_port + 1`, and so on.
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
# All workers call your function with the same arrays: `x` with all samples, `y` with their classes. Train a model from `make_model()` with `Model.fit`: plain SGD, in each step
# `global_batch` samples over *all* workers together, in their stored order, `epochs` times. The workers must end with the weights of one process that starts as the chief does.
#
# The model's outputs are scores, not probabilities. The batch divides evenly, and `strategy` stands in the set-up cell.
#
# *Difficulty ●●○, 7 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Each worker's `make_model()` draws other weights. What makes them start alike? For more, `hint("07-fit")`.
# </details>

# %% tags=["solution"] grade_id="fit"
# %%px --setup
def train_with_fit(make_model, x, y, global_batch: int, epochs: int,
                   rate: float) -> tf.keras.Model:
    """Train on all workers with Model.fit, and return the model. Called by all workers."""
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
# One process would minimise, over the batch of B samples, the mean of the losses and a penalty on the weights:
#
# $$ J(w) = \frac{1}{B} \sum_i \ell_i(w) + \frac{\lambda}{2} \sum_j w_j^2 $$
#
# `strategy.run` calls your function on every worker, for its own shard; what comes back, and its gradient, is **added up** over the workers,
# however many there are. The shard may be empty.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# How often is the penalty in the sum? `tf.nn.scale_regularization_loss` knows how many replicas there are. For more, `hint("07-loss")`.
# </details>

# %% tags=["solution"] grade_id="loss"
# %%px --setup
def part_of_objective(example_losses: tf.Tensor, weights: list[tf.Variable], decay: float,
                      global_batch: int) -> tf.Tensor:
    """This worker's part of J: one number. `example_losses` is [samples of this worker];
    `global_batch` is B, `decay` is λ."""
    ### BEGIN SOLUTION
    penalty = decay * tf.add_n([tf.nn.l2_loss(weight) for weight in weights])
    return (tf.reduce_sum(example_losses) / global_batch
            + tf.nn.scale_regularization_loss(penalty))
    ### END SOLUTION

# %% tags=["check"] grade_id="loss-check" points=3
check.loss(cluster, "part_of_objective")

# %% [markdown]
# ## 4. Who sees which sample?
#
# The data stands in files. File 0 has `files[0]` samples, file 1 has `files[1]`, and so on; samples are numbered through all files, from 0. The data is read in its order and
# batched by the *global* batch. Predict what `experimental_distribute_dataset` hands to each worker, for the three policies of the tutorial.
#
# The number of workers need not divide the batch. The last batch may be smaller: it is cut by its own size.
#
# *Difficulty ●●○, 10 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# In the tutorial a batch of 4 on two workers was cut into 2 and 2. A batch of 5 on three workers is 2, 2 and 1; of 4, as the last one may be: 2, 2 and 0. For more, `hint("07-seen")`.
# </details>

# %% tags=["solution"] grade_id="seen"
def who_sees(policy: str, files: list[int], global_batch: int,
             workers: int) -> list[list[int]]:
    """For each worker the samples that it sees in an epoch, in its order. `policy` is
    "OFF", "DATA" or "FILE"."""
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
# `strategy.distribute_datasets_from_function(f)` calls `f(context)` once in each worker: you shard, mix and batch yourself. The `context` knows
#
# * `num_input_pipelines` and `input_pipeline_id`: how many workers there are, and which one this is;
# * `num_replicas_in_sync` and `get_per_replica_batch_size(global_batch)`: a worker with four GPUs has four replicas, and its pipeline feeds them one after the other.
#
# All workers are given the same `seed`. In each epoch
#
# * all workers together see each sample once;
# * the samples come in a mixed order that changes from epoch to epoch and with the seed, so that each worker gets different samples, too. (Two pairs of epoch and seed may have the same order, so
#   a shuffle with `seed + epoch` is allowed.)
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# If each worker mixes in an order of its own and then takes every third sample, what do they see together? For more, `hint("07-dataset")`.
# </details>

# %% tags=["solution"] grade_id="dataset"
# %%px --setup
def make_dataset(context: tf.distribute.InputContext, x, y, global_batch: int, epoch: int,
                 seed: int) -> tf.data.Dataset:
    """This worker's batches (x, y) of one epoch; x and y are arrays with all samples."""
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
# All workers call `save`. A checkpoint may hold variables of which each worker has a part, such as a metric or a batch norm's mean: to write it is a collective call. But
# one file is enough, and two processes must not write the same one.
#
# Afterwards the chief's checkpoint is at `path`, and nothing else is left, neither there nor elsewhere. The folder of `path` may not exist yet: TensorFlow makes it.
#
# *Difficulty ●●○, 7 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Everybody writes. Not everybody keeps. For more, `hint("07-save")`.
# </details>

# %% tags=["solution"] grade_id="save"
# %%px --setup
import tempfile


def save(checkpoint: tf.train.Checkpoint, path: str, chief: bool, worker: int) -> None:
    """Write the checkpoint with `checkpoint.write(...)`; only the chief's stays, at `path`.
    Called by all workers."""
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
# The task that runs through units 01 to 10: a network on handwritten digits, 60 steps with batches of 250 rows. Your part of the objective trains it on three workers; the
# reference is one process, without TensorFlow. Three workers share 250 rows as 84, 84 and 82. Not graded: it works when your pieces do.

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
# [07_train.py](07_train.py), beside this lab, is the same training with `Model.fit`. Two processes that differ in nothing but `TF_CONFIG` run it. It keeps a backup in
# a folder that all workers see. On Slurm, [07_train.sbatch](07_train.sbatch) writes `TF_CONFIG` from what Slurm knows: `sbatch 07_train.sbatch FOLDER`. The cell shows nothing for
# up to a minute: two new processes import TensorFlow.

# %%
import tempfile

with tempfile.TemporaryDirectory() as folder:
    run = cluster.launch("07_train.py", folder, with_="tf_config", tasks={"worker": 2},
                         timeout_s=300)

# %% [markdown]
# ## Where to go on
#
# * Try it: in `replica_step` of *All together*, take the mean over the worker's own rows: `part = tf.reduce_mean(each) + tf.nn.scale_regularization_loss(track.DECAY *
#   tf.add_n([tf.nn.l2_loss(w) for w in weights]))`. Run both cells of *All together*, and look at the objective and the distance.
# * Unit 08: parameter servers, where workers do not wait for each other. Unit 18: training that goes on when a worker has gone.
#
# **References.** TensorFlow tutorial, [Multi-worker training with Keras](https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras) · TensorFlow tutorial,
# [Distributed input](https://www.tensorflow.org/tutorials/distribute/input)

# %%
cluster.stop()

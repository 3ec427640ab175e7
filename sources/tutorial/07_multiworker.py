# %% [markdown] unit={"minutes": 30, "ranks": 2, "framework": "tensorflow", "title": "MultiWorkerMirroredStrategy"}
# # 07 MultiWorkerMirroredStrategy: one model on several machines
#
# Two processes, each as if on a machine of its own, train one network and end with the weights of one process. At the end you can
#
# * write `TF_CONFIG` for a layout, and say who is the chief;
# * train on several workers with a loop of your own and with `Model.fit`, with the loss scaled right;
# * say which worker sees which sample under each auto-shard policy;
# * say what the other workers get when one does not come, or dies, and how the training goes on;
# * start two workers side by side on one machine, each with half of its GPUs;
# * say what only the chief does, and what all workers must do together.
#
# **Before:** you know `MirroredStrategy` (unit 02), or a little Keras and what an all-reduce is. **Minutes:** 30. **Ranks:** 2, on 2 nodes.

# %% [markdown]
# ## Two workers
#
# `MirroredStrategy` is one process with several devices. `MultiWorkerMirroredStrategy` is several processes, the **workers**: usually one for each machine, which drives
# all GPUs of it. Without GPUs, a worker is one replica on its CPU.
#
# This kernel starts two ranks, which will be the workers, and trains nothing itself. Cells that begin with `%%px` run on both; `--setup` marks what is to be run again
# after healing.

# %% tags=["setup"]
import json
import tempfile

from manyhands import Cluster, predict, settle, track

cluster = Cluster(nodes=2, ranks_per_node=1, framework="tensorflow")

# %% [markdown]
# ## TF_CONFIG, field by field
#
# No launcher stands above the workers. Each finds all it must know in one environment variable, a JSON text. For a chief and two workers on three machines:

# %%
layout = {"chief": ["node0:2222"], "worker": ["node1:2222", "node2:2222"]}
for kind, index in [("chief", 0), ("worker", 0), ("worker", 1)]:
    print(json.dumps({"cluster": layout, "task": {"type": kind, "index": index}}))

# %% [markdown]
# | field | what it says | the usual mistake |
# |---|---|---|
# | `cluster` | the address of each process, by kind. The **same** on all | another order, or `localhost`, on one machine: the workers wait for each other |
# | kinds | `chief` and `worker` train; `ps` (unit 08) keeps variables; older texts say `master` for `chief` | parameter servers counted as workers |
# | host:port | where *this* process listens; two on one host need two ports | one port for all, or a port that a colleague has too |
# | `task.type`, `task.index` | which one I am. The index counts **within** the kind, from 0 | counted through all kinds |
#
# **The chief** does what must be done once: it keeps checkpoints and logs. If there is no process of that kind, worker 0 is the chief. It trains like all others.
#
# Our ranks tell each other their addresses, with a free port on each host. Then each writes its own `TF_CONFIG`.

# %% tags=["setup"]
# %%px --setup
import json
import os

# Model.fit with this strategy needs tf_keras (Keras 2)
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf
from manyhands import track
from manyhands.cluster.addresses import exchange

tf.get_logger().setLevel("ERROR")
# ["host:port", "host:port"], the same on both
rank, workers = int(os.environ["RANK"]), exchange()
os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers},
                                      "task": {"type": "worker", "index": rank}})

# %%
# %%px
told = tf.distribute.cluster_resolver.TFConfigClusterResolver()
print(f"{told.task_type} {told.task_id} of {told.cluster_spec().num_tasks('worker')}")

# %% [markdown]
# ## First of all, the strategy
#
# The constructor starts a server in each worker and waits until all are there. That must come before any other operation:

# %%
# %%px
one = tf.constant(1)
try:
    tf.distribute.MultiWorkerMirroredStrategy()
except RuntimeError as error:
    print(error)

# %% [markdown]
# There is no way back in such a process. In a script, move the line up. Here, take new processes:

# %%
cluster.heal()

# %% tags=["setup"]
# %%px --setup
strategy = tf.distribute.MultiWorkerMirroredStrategy()
tf.keras.backend.set_floatx("float64")  # Keras' own numbers too

# %%
# %%px
print(f"{strategy.num_replicas_in_sync} replicas, {len(strategy.extended.worker_devices)} "
      f"of them here; the class is called {type(strategy).__name__}")

# %% [markdown]
# `CollectiveAllReduceStrategy` was its name in TensorFlow 1, and still is inside.
#
# ## One program, run by both
#
# Every worker runs the same program. `strategy.run` calls a function on the worker's *own* replicas only; `strategy.reduce` sums over *all* of them, and is a call
# that all workers must make.

# %%
# %%px
@tf.function
def total(x):
    return strategy.reduce("SUM", strategy.run(lambda: x), axis=None)

print(f"mine {[rank + 1, 10]}, sum {total(tf.constant([rank + 1, 10])).numpy().tolist()}")

# %% [markdown]
# **Predict.** Each worker makes a variable, from its own number. What does worker 1 hold?

# %%
predict("07-variable",
        "Each worker makes a variable from [rank, 7 + rank]. What does worker 1 hold?",
        ["[0, 7]", "[0, 8]", "[1, 8]", "[1, 15]"])

# %%
# %%px
with strategy.scope():
    weight = tf.Variable([rank, 7 + rank])
print(f"made from {[rank, 7 + rank]}, holds {weight.numpy().tolist()}")

# %%
settle("07-variable", lambda: str(cluster.pull("weight.numpy().tolist()")[1]))

# %% [markdown]
# <details><summary>Why?</summary>
#
# A variable made in the scope starts everywhere with the chief's value. So all workers start from the same weights, whatever their random numbers. Nothing else is brought
# together: a Python list, a NumPy array or the order of a shuffle is each worker's own.
# </details>
#
# ## Who sees which sample
#
# You give the dataset of the *whole* job, batched by the **global** batch. Each worker makes the same dataset, and `experimental_distribute_dataset` keeps a part of it.
# Which part, says the **auto-shard policy**:
#
# * `DATA`: each batch is cut into one piece for each replica; a worker reads all, and keeps its own.
# * `FILE`: worker i reads the files i, i + n, i + 2n, ... and nothing else.
# * `OFF`: nobody cuts anything.
# * `AUTO`, the default: `FILE` if the data is read from files, else `DATA`.
#
# Twelve samples, in memory and in four files of 5, 2, 3 and 2; global batch 4.

# %% tags=["setup"]
# %%px --setup
policies = tf.data.experimental.AutoShardPolicy

def seen(dataset, policy):
    """The batches of this worker, step by step."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = policy
    batches = strategy.experimental_distribute_dataset(dataset.batch(4).with_options(
        options))
    return [strategy.experimental_local_results(batch)[0].numpy().tolist()
            for batch in batches]

# %%
# %%px
files = []
for i, numbers in enumerate([range(5), range(5, 7), range(7, 10), range(10, 12)]):
    files.append(os.path.join(os.environ["MANYHANDS_NODE_DIR"], f"part-{i}.txt"))
    with open(files[-1], "w") as file:
        file.write("\n".join(map(str, numbers)))

in_files = tf.data.TextLineDataset(files).map(lambda line: tf.strings.to_number(
    line, tf.int64))
in_memory = tf.data.Dataset.range(12)

# %% [markdown]
# **Predict.** Under which policy does an epoch have twice as many steps? Under which does a worker sit idle in some steps? And if each worker mixes the data in an order of
# its own, does an epoch still have each sample once?

# %%
predict("07-steps", "Under which policy does an epoch have the most steps?",
        ["DATA", "FILE", "OFF"])
predict("07-idle", "Under which policy does a worker sit idle in some steps?",
        ["DATA", "FILE", "OFF"])
predict("07-once", "Each worker mixes by itself: is each sample there once?", ["yes", "no"])

# %%
# %%px
shards = {"DATA": seen(in_memory, policies.DATA),
          "FILE": seen(in_files, policies.FILE),
          "OFF": seen(in_memory, policies.OFF),
          "DATA, each mixes by itself": seen(in_memory.shuffle(12, seed=rank),
                                             policies.DATA),
          "DATA, all mix alike": seen(in_memory.shuffle(12, seed=0), policies.DATA)}

# %%
from manyhands.plots.shards import table, who_holds

both = cluster.pull("shards")
seen = {way: [own[way] for own in both] for way in both[0]}
print(table(seen, 12))
who_holds(seen, 12)

# %%
def most(number):
    return max(("DATA", "FILE", "OFF"), key=lambda way: number(seen[way]))

settle("07-steps", lambda: most(lambda workers: len(workers[0])))
settle("07-idle", lambda: most(lambda workers: sum(steps.count([]) for steps in workers)))
mixed = "DATA, each mixes by itself"
settle("07-once", lambda: sorted(sum(sum(seen[mixed], []), [])) == [*range(12)])

# %% [markdown]
# <details><summary>How to read it</summary>
#
# * `DATA`: in step 1 the workers have 0 to 3 together, the same batch that one process would have. So training is the same.
# * `FILE`: each sample once, but step 3 is 4 and 7 of worker 0, and nothing of worker 1: its files are at an end, and it goes on with empty batches, since all must take
#   the same number of steps. Have many files, of equal size.
# * `OFF`: every worker goes through all data: six steps, each with two samples, counted twice. Right only if your own dataset differs from worker to worker.
# * Mixed by each worker in its own order, the pieces no longer fit together: some samples twice, some never, and no error. Give `shuffle` the same `seed` on all.
# </details>
#
# `AUTO` has a trap. If the data is read from files, and there are fewer files than workers, it does *not* go over to `DATA`, although the documentation says so: in
# TensorFlow 2.21 worker 0 raises `InvalidArgumentError`, and the others wait or get nothing. One file and two workers: choose `DATA`.
#
# With `strategy.distribute_datasets_from_function` you shard, mix and batch by yourself, by the batch of *one replica*: exercise 5 of the lab. If reading and preparing the data is what limits the training, have many more files than workers, or move the preparation to
# other machines ([tf.data service](https://www.tensorflow.org/api_docs/python/tf/data/experimental/service), not run here).
#
# ## Scale the loss
#
# The task of this track: 60 steps with 250 rows on the digits, everything in `float64`; the reference is one process without a framework. Each worker has 125 rows of each batch.
# Gradients are summed over the workers, so each must divide by the *global* batch; and the penalty, which belongs to no row, must count once.

# %% tags=["setup"]
# %%px --setup
reference, _ = track.one_process()
far = {}

def network(**options):
    inputs, hidden, outputs = track.SIZES
    layers = [tf.keras.layers.Dense(hidden, "tanh", input_shape=(inputs,), **options),
              tf.keras.layers.Dense(outputs, **options)]
    model = tf.keras.Sequential(layers)
    model.set_weights([start.T for start in track.start()])
    return model

def distance(model):
    return track.distance([weight.T for weight in model.get_weights()], reference)

# %% tags=["setup"]
# %%px --setup
def make_step(model, optimizer, mean):
    def replica_step(x, y):
        with tf.GradientTape() as tape:
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x))
            penalty = (track.DECAY
                       * tf.add_n([tf.nn.l2_loss(weight)
                                   for weight in model.trainable_variables]))
            # divides by the number of replicas
            part = mean(each) + tf.nn.scale_regularization_loss(penalty)
        gradients = tape.gradient(part, model.trainable_variables)
        # sums over the workers
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return part

    return tf.function(lambda batch: strategy.reduce("SUM",
                                                     strategy.run(replica_step, batch),
                                                     axis=None))

# %% tags=["setup"]
# %%px --setup
def train(mean, rate=track.RATE):
    with strategy.scope():
        model, optimizer = network(), tf.keras.optimizers.SGD(rate)
    step = make_step(model, optimizer, mean)
    rows = tf.data.Dataset.from_tensor_slices(track.data()).batch(track.ROWS)
    batches = strategy.experimental_distribute_dataset(
        rows.repeat(track.STEPS * track.ROWS // track.DIGITS))
    return model, [float(step(batch)) for batch in batches]

# %% [markdown]
# The usual mistake is `tf.reduce_mean` over the worker's own rows. Two such means are added up, so the gradient of the data is twice too large.
#
# **Predict.** Someone notices this and halves the learning rate. Are the weights at the end the weights of one process again?

# %%
predict("07-half-rate",
        "Two workers, reduce_mean and a penalty: does half the rate repair the weights?",
        ["yes", "no"])

# %%
# %%px
model, right = train(lambda each: tf.nn.compute_average_loss(each,
                                                             global_batch_size=track.ROWS))
far["MultiWorkerMirroredStrategy, own loop"] = distance(model)
print(f"sum / global batch: loss {right[0]:.4f} to {right[-1]:.4f}, weights of one "
      f"process, to 1e-12: {distance(model) < 1e-12}")
halved = 0.0
for rate in (track.RATE, track.RATE / 2):
    model, losses = train(tf.reduce_mean, rate)
    halved = distance(model)
    print(f"mean of own rows, rate {rate}: loss {losses[0]:.4f} to {losses[-1]:.4f}, "
          f"weights {halved:.3f} apart")

# %%
settle("07-half-rate", lambda: max(cluster.pull("halved")) < 1e-12)

# %% [markdown]
# <details><summary>Why?</summary>
#
# The mean makes the gradient of the data twice as large, but `scale_regularization_loss` has divided the penalty correctly. Half the rate repairs the one and makes the other half as strong. With Adam, halving the rate
# is wrong in a different way: Adam divides by the size of the gradient, so a factor of two hardly changes its steps. On eight workers the factor is eight.
# </details>
#
# ## Model.fit
#
# `fit` scales, sums and shards by itself. Its batch is the global batch too. Each worker's loss is the mean of its own rows, divided by the number of replicas: right if all have
# equally many.

# %%
# %%px
penalty = tf.keras.regularizers.L2(track.DECAY / 2)
with strategy.scope():
    model = network(kernel_regularizer=penalty, bias_regularizer=penalty)
    model.compile(tf.keras.optimizers.SGD(track.RATE),
                  tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
rows = tf.data.Dataset.from_tensor_slices(track.data()).batch(track.ROWS)
history = model.fit(rows, epochs=track.STEPS * track.ROWS // track.DIGITS, verbose=0)
far["MultiWorkerMirroredStrategy, Model.fit"] = distance(model)
print(f"mean loss of an epoch: {history.history['loss'][0]:.4f} to "
      f"{history.history['loss'][-1]:.4f}")

# %%
print(track.table("07", cluster.pull("far")[0]))

# %% [markdown]
# Equal to 1e-12: the workers add the same numbers in another order. That needs `set_floatx("float64")`, too. Without it Keras builds the whole network in
# `float32`, and the weights end 2e-7 apart. To make only the layers `float64` is not enough: Keras keeps the factor of the penalty, 0.005, in `float32`, off by 2e-8 of its value.
#
# ## What the chief does, and what all must do
#
# Some variables are not mirrored: each worker has its own *part*, and whoever reads them sums or averages over all. Metrics are such, and the mean of a batch norm. Here each
# worker counts something of its own, and both write a checkpoint:

# %%
# %%px
with strategy.scope():
    count = tf.Variable(0, trainable=False,
                        synchronization=tf.VariableSynchronization.ON_READ,
                        aggregation=tf.VariableAggregation.SUM)
part = strategy.experimental_local_results(count)[0]
part.assign(100 + rank)
# each worker has a folder of its own
path = os.path.join(os.environ["MANYHANDS_NODE_DIR"], "checkpoint")
tf.train.Checkpoint(count=count).write(path)
print(f"my part {part.numpy()}, in the file "
      f"{tf.train.load_variable(path, 'count/.ATTRIBUTES/VARIABLE_VALUE')}")

# %% [markdown]
# To write is to read, and to read is an all-reduce. So:
#
# | | who |
# |---|---|
# | `model.save`, `checkpoint.write`, `model.evaluate`, reading a metric | **all** workers, in the same order |
# | the file that stays | the **chief**; the others write into a folder that is thrown away |
# | TensorBoard, prints, a table of results | the chief |
# | callbacks of `fit`: `ModelCheckpoint`, `BackupAndRestore` | give them to all; they know what to do |
#
# `if chief: model.save(...)` looks right and hangs: the chief waits for parts that nobody sends. In a network without such variables it may even work, until someone adds a metric.
#
# ## When a worker does not come
#
# A collective call waits for all. By default it waits as long as the others live. `CommunicationOptions` sets a limit, for the strategy or for one call:

# %%
# %%px
limited = tf.distribute.experimental.CommunicationOptions(timeout_seconds=3)

@tf.function
def summed(x):
    return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce(
        "SUM", tf.identity(x), options=limited))

# TensorFlow's own lines about it have the time in them
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
if rank == 0:  # worker 1 goes its own way
    for attempt in (1, 2):
        try:
            summed(tf.constant(1.0))
        except tf.errors.OpError as error:
            print(f"attempt {attempt}: {type(error).__name__}")

# %% [markdown]
# After the first failure *all* collective calls of this process are aborted: the second attempt fails at once. As before, only new processes help.

# %%
cluster.heal()

# %% [markdown]
# The time-out is for debugging: TensorFlow starts a thread for each collective call that has one. The other options are hints, too: `implementation` is `RING` (TensorFlow's own), `NCCL` or `AUTO`, which picks;
# `bytes_per_pack` cuts the gradients into packs of that size, so that updates can begin while others travel (in `MultiWorkerMirroredStrategy(communication_options=...)`).

# %% [markdown]
# > **On GPUs.** A worker drives all GPUs of its machine: `num_replicas_in_sync` counts GPUs, and the global batch is cut for all of them. `NCCL` is taken for the all-reduce between GPUs only;
# > all-reduce on CPUs, all-gather and broadcast go by `RING` all the same. A step returns before the GPUs have finished: fetch a number of its result, `float(step(batch))`, before you
# > read the clock.

# %% [markdown]
# ## When a worker dies
#
# Now as one does it outside a notebook: a script, [scripts/07_train.py](scripts/07_train.py), and two processes that differ in nothing but `TF_CONFIG`. It is the training above with
# `Model.fit` and the callback `BackupAndRestore`, which saves after each epoch. We kill the chief when epoch 4 begins.
#
# **Predict.** What does worker 1 get: nothing, an error, or does it go on alone? (The next cell shows nothing for up to a minute: two new processes import TensorFlow.)

# %%
predict("07-killed", "The chief is killed. What does worker 1 do?",
        ["it waits", "it ends with an error", "it goes on alone"])

# %%
folder = tempfile.TemporaryDirectory(prefix="manyhands-")  # one that all workers see

def start(*options):
    run = cluster.launch("scripts/07_train.py", folder.name, *options, with_="tf_config",
                         tasks={"worker": 2}, echo=False, timeout_s=300)
    for name, text, code in zip(run.names, run.output.values(), run.returncodes.values()):
        said = [line for line in text.splitlines() if line.startswith(name)]
        print(f"exit code {code:>2}  {' '.join(said) or name + ' has said nothing.'}")
    return run


run = start("--die", "4")

# %%
TIMED_OUT = 124
settle("07-killed", lambda: {0: "it goes on alone", TIMED_OUT: "it waits"}.get(
    [*run.returncodes.values()][1], "it ends with an error"))

# %% [markdown]
# It gets an error and cannot go on: the group has lost a member. That is the chief's death, which worker 1 notices at once, because the connection breaks. If a worker dies that nobody is
# just receiving from, the others hear of it when its heartbeats stay away: after about ten seconds, `UnavailableError` too. There is no training with a worker less (unit 18 has systems
# that can). Start **all** again, with the same command:

# %%
run = start()
folder.cleanup()

# %% [markdown]
# Epochs 0 to 3 were not done again, and the weights equal the weights that a single process computes without an interruption. `BackupAndRestore(..., save_freq=N)` loses even less, because it saves every N batches. A machine that is
# taken back with a warning can save at the warning. Under `fit`, `BackupAndRestore(..., save_before_preemption=True)` then makes all workers save together in the middle of an epoch (its documentation says that it works
# on Google's cloud only). In a custom loop, `tf.distribute.experimental.PreemptionCheckpointHandler` does so if you call each step through its `run`. Neither of the two was run here.
#
# ## Two launchers side by side
#
# To try two workers you do not need two machines. A shell script can start both on one machine and give each of them half of the GPUs, so that the machine looks like two nodes. This is the main part of
# [scripts/07_halves.sh](scripts/07_halves.sh) for a machine with four GPUs:
#
# ```bash
# export TF_CONFIG=...                                         # the same list of workers, and the index
# CUDA_VISIBLE_DEVICES=0,1 python 07_train.py FOLDER &         # index 0, in the background
# first=$!
# CUDA_VISIBLE_DEVICES=2,3 python 07_train.py FOLDER &         # index 1
# second=$!
# trap 'kill $first $second' EXIT
# wait -n && wait $first && wait $second                       # until both have ended, or until one has failed
# ```
#
# Each worker numbers the GPUs that it sees from 0. The script also takes two free ports. Its last lines matter if a worker fails before it has met the other one, for example at an import. The other worker would then wait in the background and keep its GPUs.

# %%
import os
import subprocess
import sys

folder = tempfile.TemporaryDirectory(prefix="manyhands-")
# so that `python` in the script is this kernel's
path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
done = subprocess.run(["bash", "scripts/07_halves.sh", folder.name], text=True, timeout=300,
                      capture_output=True, env={**os.environ, "PATH": path})
print(*sorted(line for line in done.stdout.splitlines() if line.startswith("worker")),
      f"exit code {done.returncode}", sep="\n")
folder.cleanup()

# %% [markdown]
# For a training run on one machine, `MirroredStrategy` (unit 02) does the same in one process. Two launchers side by side are for trying out what will run on two machines. In PyTorch, the two lines of the script are two
# `torchrun --nnodes 2 --node-rank 0` (and `1`) `--nproc-per-node 2 --master-addr 127.0.0.1 --master-port PORT train.py` (unit 06).
#
# On a real cluster, something must write each worker's `TF_CONFIG`. [scripts/07_train.sbatch](scripts/07_train.sbatch) does it from what Slurm knows: the nodes of the job, and
# `SLURM_PROCID`. (`tf.distribute.cluster_resolver` has resolvers for Slurm and Kubernetes, too.)
#
# ## What it costs
#
# In each step an all-reduce of all gradients, $2 (p - 1) / p$ of their bytes from each worker (unit 04), over the network. Measured here, median of 30 steps:

# %% tags=["measured"]
# %%px
from time import perf_counter

def median_ms(step, batch):
    taken = []
    for _ in range(30):
        begin = perf_counter()
        # fetches the result: a GPU may still compute when the call returns
        float(step(batch))
        taken.append((perf_counter() - begin) * 1e3)
    return sorted(taken)[15]

rows = tf.data.Dataset.from_tensor_slices(track.data()).batch(track.ROWS)
with strategy.scope():
    step = make_step(network(), tf.keras.optimizers.SGD(track.RATE),
                     lambda each: tf.reduce_sum(each) / track.ROWS)
print(f"a step on two workers: "
      f"{median_ms(step, next(iter(strategy.experimental_distribute_dataset(rows)))):.2f} "
      f"ms")

# %% [markdown]
# **Use it** when a model fits on one device, training on one machine takes too long, and you are at home in TensorFlow. The code is that of `MirroredStrategy`; only `TF_CONFIG` is new.
#
# **Do not use it** when one machine is enough (`MirroredStrategy` needs no network); when machines come and go (unit 18), or differ in speed, since the slowest one sets the pace (units 08
# and 09); or when the model does not fit on one device (units 12 to 16). For new work in PyTorch, take DDP (unit 06). For one model on many machines, Keras's author advises Keras 3 on JAX
# ([Keras issue 20585](https://github.com/keras-team/keras/issues/20585), 2024).
#
# **The three most common mistakes.** A `TF_CONFIG` that is not the same everywhere, or whose index counts through all kinds: at best one worker raises `ValueError` (its
# `task_id` exceeds the maximum), and the others wait without a word. A loss divided by the number of the worker's own rows. Something that only one worker does: an order of the data of its
# own, or a checkpoint that only the chief writes. You meet all of them in the lab.
#
# ## What has aged
#
# <details><summary>Slides and articles of 2018 to 2021, and today</summary>
#
# | slides and articles of 2018 to 2021 say | today |
# |---|---|
# | `tf.contrib.distribute.CollectiveAllReduceStrategy` for several nodes | `tf.distribute.MultiWorkerMirroredStrategy`; `tf.contrib` ended with TensorFlow 1 |
# | `tf.keras` cannot train on several nodes: turn the model into an Estimator | the other way round: Estimator is gone (2.16), `fit` does it |
# | `"master"` in `TF_CONFIG` | `"chief"`; a `master` is not known to this strategy |
# | with Keras, `fit` works as it is | with Keras 2. Since 2.16 `tf.keras` is Keras 3, whose `fit` fails here: `TF_USE_LEGACY_KERAS=1` and `tf_keras` |
# | ports 12345 and 23456 in the script | two people on one machine get in each other's way. Take ports that are free |
# | make the strategy before other operations; split the GPUs of one machine with `CUDA_VISIBLE_DEVICES` | both hold |
# | `CollectiveCommunication.RING` | `CommunicationOptions(implementation=CommunicationImplementation.RING)` |
# </details>
#
# ## What you can say now
#
# * *TF_CONFIG* lists all addresses by kind, the same on all, and says which one I am; the chief, or else worker 0, does what is done once.
# * *Strategy first.* Then one program for all: variables start with the chief's values, gradients are summed, losses are divided by the global batch.
# * *DATA* cuts each batch, *FILE* deals files, *OFF* gives all to everybody; a shuffle needs one seed.
# * *A worker that does not come* is waited for, up to a time-out; *one that dies* ends the training of all. Start again, from the backup.
# * *All* write checkpoints, the *chief's* stays.
#
# **Now the lab:** write what the strategy leaves to you. Then unit 08 for servers that keep the variables.
#
# **References.** P. Patarasuk and X. Yuan 2009, *Bandwidth optimal all-reduce algorithms for clusters of workstations*,
# [doi:10.1016/j.jpdc.2008.09.002](https://doi.org/10.1016/j.jpdc.2008.09.002) · TensorFlow tutorials,
# [Multi-worker training with Keras](https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras) and
# [Distributed input](https://www.tensorflow.org/tutorials/distribute/input) · TensorFlow guide,
# [Distributed training](https://www.tensorflow.org/guide/distributed_training)

# %%
cluster.stop()

# %% [markdown] unit={"minutes": 40, "ranks": 2, "framework": "tensorflow", "title": "MultiWorkerMirroredStrategy"}
# # 07 MultiWorkerMirroredStrategy: one model on several machines
#
# In this notebook, two processes train one network as if each of them ran on its own machine, and they end with the weights that a single process computes. At
# the end, you can
#
# * write `TF_CONFIG` for a layout of processes, and determine which process is the chief.
# * train on several workers with a custom loop and with `Model.fit`, and scale the loss correctly.
# * predict which worker sees which sample under each auto-shard policy.
# * explain what happens to the other workers when one worker skips a collective call or dies, and how training continues.
# * start two workers side by side on one machine, each with half of the machine's GPUs.
# * explain what only the chief does, and what all workers must do together.
#
# **Before:** you know `MirroredStrategy` (unit 02), or a little Keras and what an all-reduce is. **Minutes:** 40 · **Ranks:** 2, on 2 nodes.

# %% [markdown]
# ## Two workers
#
# `MirroredStrategy` runs one process with several devices, whereas `MultiWorkerMirroredStrategy` runs several processes, which are called **workers**. Usually,
# each machine has one worker, which drives all GPUs of the machine. Without GPUs, a worker is a single replica on its CPU.
#
# This kernel trains nothing itself. It starts two ranks, which become the workers. Cells that begin with `%%px` run on both ranks, and `--setup` marks the
# cells that are run again after healing.

# %% tags=["setup"]
import json
import tempfile

from manyhands import Cluster, predict, settle, track

cluster = Cluster(nodes=2, ranks_per_node=1, framework="tensorflow")

# %% [markdown]
# ## TF_CONFIG, field by field
#
# No launcher directs the workers. Instead, each of them finds everything it needs to know in one environment variable, a JSON string. These are the strings for
# a chief and two workers on three machines:

# %%
layout = {"chief": ["node0:2222"], "worker": ["node1:2222", "node2:2222"]}
for kind, index in [("chief", 0), ("worker", 0), ("worker", 1)]:
    print(json.dumps({"cluster": layout, "task": {"type": kind, "index": index}}))

# %% [markdown]
# | field | what it says | the usual mistake |
# |---|---|---|
# | `cluster` | the address of each process, by kind, which must be the **same** for all processes | a different order, or `localhost`, on one of the machines, so that the workers wait for each other |
# | kinds | `chief` and `worker` train, whereas `ps` (unit 08) stores variables; older texts call the chief `master` | parameter servers are counted as workers |
# | host:port | where *this* process listens; two processes on one host need two ports | all processes have the same port, or a colleague is using the port |
# | `task.type`, `task.index` | which process this one is; the index numbers the processes **within** the kind, from 0 | the index runs through all kinds |
#
# **The chief** does what must be done only once, such as keeping checkpoints and logs. If there is no process of the kind `chief`, worker 0 is the chief. The
# chief also trains, like all other workers.
#
# Each of our ranks chooses a free port on its host, and the ranks exchange their addresses. Then each rank writes its own `TF_CONFIG`.

# %% tags=["setup"]
# %%px --setup
import json
import os

# because Model.fit with this strategy needs tf_keras (Keras 2)
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf
from manyhands import track
from manyhands.cluster.addresses import exchange

tf.get_logger().setLevel("ERROR")
# ["host:port", "host:port"], the same on both ranks
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
# The constructor of the strategy starts a server in each worker and waits until all workers are connected. This constructor must run before any other
# operation:

# %%
# %%px
one = tf.constant(1)
try:
    tf.distribute.MultiWorkerMirroredStrategy()
except RuntimeError as error:
    print(error)

# %% [markdown]
# In a process that has already run an operation, it is too late to create the strategy. In a script, you would move the constructor to the top. In this
# notebook, however, we need new processes:

# %%
cluster.heal()

# %% tags=["setup"]
# %%px --setup
strategy = tf.distribute.MultiWorkerMirroredStrategy()
tf.keras.backend.set_floatx("float64")  # for Keras' own numbers, too

# %%
# %%px
print(f"{strategy.num_replicas_in_sync} replicas, {len(strategy.extended.worker_devices)} "
      f"of them here; the class is called {type(strategy).__name__}")

# %% [markdown]
# In TensorFlow 1, the strategy was called `CollectiveAllReduceStrategy`, and internally it still has that name.
#
# ## One program, run by both
#
# Every worker runs the same program. Whereas `strategy.run` calls a function on the worker's *own* replicas only, `strategy.reduce` sums over the replicas of
# *all* workers, so all workers must call `reduce`.

# %%
# %%px
@tf.function
def total(x):
    return strategy.reduce("SUM", strategy.run(lambda: x), axis=None)

print(f"mine {[rank + 1, 10]}, sum {total(tf.constant([rank + 1, 10])).numpy().tolist()}")

# %% [markdown]
# **Predict.** Each worker creates a variable from its own number. What does worker 1 hold?

# %%
# Run this cell to make your prediction.
predict("07-variable",
        "Each worker creates a variable from [rank, 7 + rank]. What does worker 1 hold?",
        ["[0, 7]", "[0, 8]", "[1, 8]", "[1, 15]"])

# %%
# %%px
with strategy.scope():
    weight = tf.Variable([rank, 7 + rank])
print(f"made from {[rank, 7 + rank]}, holds {weight.numpy().tolist()}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("07-variable", lambda: str(cluster.pull("weight.numpy().tolist()")[1]))

# %% [markdown]
# <details><summary>Why?</summary>
#
# A variable that is created in the strategy's scope starts with the chief's value on every worker. All workers therefore start from the same weights, even if
# their random numbers differ. Nothing else is synchronised, so a Python list, a NumPy array or the order of a shuffle can be different on each worker.
# </details>
#
# ## Which worker sees which sample
#
# You provide the dataset of the *whole* job, batched by the **global** batch size. Each worker creates the same dataset, and `experimental_distribute_dataset`
# keeps only the worker's part of it. The **auto-shard policy** decides which part that is:
#
# * `DATA` splits each batch into one piece for each replica. A worker reads all of the data and keeps its own pieces.
# * `FILE` lets worker i of n read the files i, i + n, i + 2n, ... and nothing else.
# * `OFF` shards nothing, so every worker receives all samples.
# * `AUTO`, the default, means `FILE` if the data is read from files, and `DATA` otherwise.
#
# We use twelve samples, stored once in memory and once in four files of 5, 2, 3 and 2 samples. The global batch size is 4.

# %% tags=["setup"]
# %%px --setup
policies = tf.data.experimental.AutoShardPolicy

def seen(dataset, policy):
    """Return the batches of this worker, step by step."""
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
# **Predict.** Under which policy does an epoch have the most steps? Under which policy is a worker idle in some steps? And if each worker shuffles the data in
# its own order, does an epoch still contain each sample exactly once?

# %%
# Run this cell to make your prediction.
predict("07-steps", "Under which policy does an epoch have the most steps?",
        ["DATA", "FILE", "OFF"])
predict("07-idle", "Under which policy is a worker idle in some steps?",
        ["DATA", "FILE", "OFF"])
predict("07-once",
        "Each worker shuffles in its own order. Does an epoch have each sample once?",
        ["yes", "no"])

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
# Run this cell to compare your prediction with the outcome.
def most(number):
    return max(("DATA", "FILE", "OFF"), key=lambda way: number(seen[way]))

settle("07-steps", lambda: most(lambda workers: len(workers[0])))
settle("07-idle", lambda: most(lambda workers: sum(steps.count([]) for steps in workers)))
mixed = "DATA, each mixes by itself"
settle("07-once", lambda: sorted(sum(sum(seen[mixed], []), [])) == [*range(12)])

# %% [markdown]
# <details><summary>How to read it</summary>
#
# * `DATA`: in step 1, the workers together have the samples 0 to 3, which is the batch that a single process would have. Training therefore ends with the same
#   weights, too.
# * `FILE`: each sample appears once, but in step 3, worker 0 has samples 4 and 7 while worker 1 has none. Worker 1 has reached the end of its files and
#   continues with empty batches, because all workers must take the same number of steps. You should therefore have many files of equal size.
# * `OFF`: every worker goes through all of the data in six steps of two samples, so each sample counts twice. This policy is right only if your own code gives
#   each worker a different dataset.
# * *DATA, each mixes by itself*: because each worker shuffles in its own order, the pieces no longer fit together. Some samples appear twice and others never,
#   but there is no error. To prevent this, give `shuffle` the same `seed` on all workers, as in *DATA, all mix alike*.
# </details>
#
# `AUTO` has a trap. If the data is read from files, and there are fewer files than workers, `AUTO` does *not* switch to `DATA`, although the documentation says
# that it does. In TensorFlow 2.21, worker 0 raises `InvalidArgumentError` instead, while the other workers wait or receive nothing. If you have one file and
# two workers, choose `DATA`.
#
# With `strategy.distribute_datasets_from_function`, you shard, shuffle and batch the data yourself, using the batch size of *one replica* (exercise 5 of the
# lab). If reading and preparing the data limits training, use many more files than workers, or move the preparation to other machines
# ([tf.data service](https://www.tensorflow.org/api_docs/python/tf/data/experimental/service), not run here).
#
# ## Scale the loss
#
# We train the network of this track for 60 steps of 250 rows of digits each, with everything in `float64`. The reference is a single process without a
# framework. Each worker has 125 rows of each batch. Since gradients are summed over the workers, each worker must divide its losses by the *global* batch size.
# The penalty, however, belongs to no row and must be counted only once.

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
            # the second term is divided by the number of replicas
            part = mean(each) + tf.nn.scale_regularization_loss(penalty)
        gradients = tape.gradient(part, model.trainable_variables)
        # `apply_gradients` sums over the workers
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
# The usual mistake is `tf.reduce_mean` over the worker's own rows. Because two such means are added, the gradient of the data term is twice as large as it
# should be.
#
# **Predict.** Suppose that you notice the doubled gradient and halve the learning rate. Does training then end with the same weights as a single process?

# %%
# Run this cell to make your prediction.
predict("07-half-rate",
        "Two workers use reduce_mean and a penalty. Does half the rate repair the weights?",
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
# Run this cell to compare your prediction with the outcome.
settle("07-half-rate", lambda: max(cluster.pull("halved")) < 1e-12)

# %% [markdown]
# <details><summary>Why?</summary>
#
# The mean makes the gradient of the data term twice as large, but `scale_regularization_loss` has divided the penalty correctly. Half the rate therefore
# repairs the data term but makes the penalty half as strong. With Adam, halving the rate is wrong for a different reason. Since Adam divides by the size of the
# gradient, a factor of two hardly changes its steps, whereas half the rate makes them half as large. On eight workers, the factor of two becomes eight.
# </details>
#
# ## Model.fit
#
# `Model.fit` scales the loss, sums the gradients and shards the data by itself. The batch size of its dataset is again the global one. Each worker's loss is
# the mean over its own rows, divided by the number of replicas, which is right if all replicas have the same number of rows.

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
# The weights agree to 1e-12 rather than to the last bit, because the workers add the same numbers in a different order. This agreement also requires
# `set_floatx("float64")`. Without this call, Keras builds the whole network in `float32`, and in the end, the weights differ by 2e-7. It is not enough to make
# only the layers `float64`, because Keras keeps the factor of the penalty, 0.005, in `float32`, with a relative error of 2e-8.
#
# ## What the chief does, and what all workers must do
#
# Some variables are not mirrored. Instead, each worker has its own *part* of such a variable, and reading the variable sums or averages the parts of all
# workers. Examples are metrics and the mean of a batch norm. In the next cell, each worker sets its part of a count, and both workers write a checkpoint.

# %%
# %%px
with strategy.scope():
    count = tf.Variable(0, trainable=False,
                        synchronization=tf.VariableSynchronization.ON_READ,
                        aggregation=tf.VariableAggregation.SUM)
part = strategy.experimental_local_results(count)[0]
part.assign(100 + rank)
# each worker has its own folder
path = os.path.join(os.environ["MANYHANDS_NODE_DIR"], "checkpoint")
tf.train.Checkpoint(count=count).write(path)
print(f"my part {part.numpy()}, in the file "
      f"{tf.train.load_variable(path, 'count/.ATTRIBUTES/VARIABLE_VALUE')}")

# %% [markdown]
# The file contains the sum of both parts, because writing a variable means reading it, and reading it is an all-reduce. For this reason, the work is divided as
# follows:
#
# | what | who |
# |---|---|
# | `model.save`, `checkpoint.write`, `model.evaluate`, reading a metric | **all** workers, in the same order |
# | the file that is kept | the **chief**; the others write into a folder that is deleted afterwards |
# | TensorBoard, prints, a table of results | the chief |
# | callbacks of `fit`: `ModelCheckpoint`, `BackupAndRestore` | all workers; the callbacks know what each worker must do |
#
# Although `if chief: model.save(...)` looks right, it hangs, because the chief waits for parts that no other worker sends. In a network in which all variables
# are mirrored, this line may even work, until someone adds a metric.
#
# ## When a worker skips a collective call
#
# A collective call waits for all workers. By default, it waits as long as the other workers are alive. `CommunicationOptions` sets a time limit for the
# strategy or for a single call:

# %%
# %%px
limited = tf.distribute.experimental.CommunicationOptions(timeout_seconds=3)

@tf.function
def summed(x):
    return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce(
        "SUM", tf.identity(x), options=limited))

# hides TensorFlow's own messages about it, because they contain the time
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
if rank == 0:  # worker 1 does not call it
    for attempt in (1, 2):
        try:
            summed(tf.constant(1.0))
        except tf.errors.OpError as error:
            print(f"attempt {attempt}: {type(error).__name__}")

# %% [markdown]
# After the first failure, *all* collective calls of this process are aborted, so the second attempt fails immediately. As before, only new processes help.

# %%
cluster.heal()

# %% [markdown]
# The timeout is for debugging, because TensorFlow starts a thread for each collective call that has a timeout. The other options are only hints.
# `implementation` is `RING` (TensorFlow's own), `NCCL` or `AUTO`, which lets TensorFlow choose. In `MultiWorkerMirroredStrategy(communication_options=...)`,
# `bytes_per_pack` splits the gradients into packs of that size, so that updates can begin while other packs are still on their way.

# %% [markdown]
# > **On GPUs.** A worker drives all GPUs of its machine, so `num_replicas_in_sync` counts GPUs, and the global batch is split over all of them. `NCCL` is used
# > only for the all-reduce between GPUs, whereas an all-reduce on CPUs, an all-gather and a broadcast use `RING` in any case. Since a step returns before the
# > GPUs have finished, fetch its result as a number with `float(step(batch))` before you read the clock.

# %% [markdown]
# ## When a worker dies
#
# Outside a notebook, you would run a script such as [scripts/07_train.py](scripts/07_train.py) in two processes that differ only in their `TF_CONFIG`. The
# script trains the same network as above with `Model.fit` and the callback `BackupAndRestore`, which saves the state after each epoch. We kill the chief when
# epoch 4 begins.
#
# **Predict.** Does worker 1 wait, does it end with an error, or does it continue alone? (The next cell shows nothing for up to a minute, because two new
# processes import TensorFlow.)

# %%
# Run this cell to make your prediction.
predict("07-killed", "The chief is killed. What does worker 1 do?",
        ["it waits", "it ends with an error", "it goes on alone"])

# %%
folder = tempfile.TemporaryDirectory(prefix="manyhands-")  # visible to all workers

def start(*options):
    run = cluster.launch("scripts/07_train.py", folder.name, *options, with_="tf_config",
                         tasks={"worker": 2}, echo=False, timeout_s=300)
    for name, text, code in zip(run.names, run.output.values(), run.returncodes.values()):
        said = [line for line in text.splitlines() if line.startswith(name)]
        print(f"exit code {code:>2}  {' '.join(said) or name + ' has said nothing.'}")
    return run


run = start("--die", "4")

# %%
# Run this cell to compare your prediction with the outcome.
TIMED_OUT = 124
settle("07-killed", lambda: {0: "it goes on alone", TIMED_OUT: "it waits"}.get(
    [*run.returncodes.values()][1], "it ends with an error"))

# %% [markdown]
# Worker 1 raises an error and cannot continue, because the group has lost a member. Worker 1 notices the loss immediately, since the connection to the chief
# breaks. If, however, no other worker is receiving data from a worker at the moment when it dies, the others notice only that its heartbeats stop, and they
# raise an `UnavailableError` after about ten seconds. Training cannot continue with one worker fewer (unit 18 covers systems in which it can). Start **all**
# workers again with the same command:

# %%
run = start()
folder.cleanup()

# %% [markdown]
# Epochs 0 to 3 were not repeated, and training ended with the same weights as a single process that is never interrupted. `BackupAndRestore(..., save_freq=N)`
# loses even less, because it saves every N batches. If a warning precedes the loss of a machine, the state can be saved when the warning arrives. Under `fit`,
# `BackupAndRestore(..., save_before_preemption=True)` then makes all workers save together in the middle of an epoch (its documentation says that it works on
# Google's cloud only). In a custom loop, `tf.distribute.experimental.PreemptionCheckpointHandler` does so if you call each step through its `run`. Neither of
# the two was run here.
#
# ## Two launchers side by side
#
# You do not need two machines to try two workers. A shell script can start both workers on one machine and give each of them half of the GPUs, so that the
# machine looks like two nodes. This is the main part of [scripts/07_halves.sh](scripts/07_halves.sh) for a machine with four GPUs:
#
# ```bash
# worker() {                                                   # worker INDEX GPUS
#     export TF_CONFIG=...                                     # the same list of workers, and index $1
#     CUDA_VISIBLE_DEVICES=$2 exec python 07_train.py FOLDER
# }
# worker 0 0,1 &                                               # in the background
# first=$!
# worker 1 2,3 &
# second=$!
# trap 'kill $first $second' EXIT
# wait -n && wait $first && wait $second                       # until both have ended, or until one has failed
# ```
#
# Inside each worker, the visible GPUs are numbered from 0. The script also chooses two free ports. The script's last lines matter if a worker fails before it
# has met the other one, for example during an import. Without these lines, the other worker would wait in the background and keep its GPUs.

# %%
import os
import subprocess
import sys

folder = tempfile.TemporaryDirectory(prefix="manyhands-")
# so that `python` in the script is this kernel's Python
path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
done = subprocess.run(["timeout", "300", "bash", "scripts/07_halves.sh", folder.name],
                      text=True, capture_output=True, env={**os.environ, "PATH": path})
print(*sorted(line for line in done.stdout.splitlines() if line.startswith("worker")),
      f"exit code {done.returncode}", sep="\n")
folder.cleanup()

# %% [markdown]
# On one machine, `MirroredStrategy` (unit 02) trains on all GPUs in one process. Use two workers side by side to try out what will later run on two machines.
# In PyTorch, the two lines that call `worker` become two commands
# `torchrun --nnodes 2 --node-rank N --nproc-per-node 2 --master-addr 127.0.0.1 --master-port PORT train.py`, one with N = 0 and one with N = 1, again with
# `CUDA_VISIBLE_DEVICES` in front of each (unit 06).
#
# On a real cluster, some program must write each worker's `TF_CONFIG`. [scripts/07_train.sbatch](scripts/07_train.sbatch) does this from the job's list of
# nodes and `SLURM_PROCID`, which Slurm provides. (`tf.distribute.cluster_resolver` also has resolvers for Slurm and Kubernetes.)
#
# ## What it costs
#
# In each step, the workers exchange all gradients over the network in an all-reduce, and each of the $p$ workers sends $2 (p - 1) / p$ times the bytes of the
# gradients (unit 04). The next cell measures the median time of 30 steps:

# %% tags=["measured"]
# %%px
from time import perf_counter

def median_ms(step, batch):
    taken = []
    for _ in range(30):
        begin = perf_counter()
        # fetches the result, because a GPU may still compute when the call returns
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
# **Use it** when a model fits on one device, training on one machine takes too long, and you are familiar with TensorFlow. The code is the same as for
# `MirroredStrategy`, and only `TF_CONFIG` is new.
#
# **Do not use it** when one machine is enough, because `MirroredStrategy` needs no network. Do not use it for machines that come and go (unit 18) or differ
# in speed, since the slowest one sets the pace (units 08 and 09), or for models that do not fit on one device (units 12 to 16). For new work in PyTorch, use
# DDP instead (unit 06). For one model on many machines, Keras's author recommends Keras 3 on JAX
# ([Keras issue 20585](https://github.com/keras-team/keras/issues/20585), 2024).
#
# **The three most common mistakes.** The first is a `TF_CONFIG` whose `cluster` is not the same everywhere, or whose index is counted across all kinds. At
# best, one worker raises `ValueError` (because its `task_id` exceeds the maximum), while the others wait silently. The second is a loss that is divided by the
# number of the worker's own rows. The third is something that only one worker does, for example shuffling the data in its own order, or writing a checkpoint on
# the chief alone. You will meet all three mistakes in the lab.
#
# ## What has aged
#
# <details><summary>Slides and articles from 2018 to 2021, and today</summary>
#
# | slides and articles of 2018 to 2021 say | today |
# |---|---|
# | `tf.contrib.distribute.CollectiveAllReduceStrategy` is for several nodes | it is called `tf.distribute.MultiWorkerMirroredStrategy`, since `tf.contrib` ended with TensorFlow 1 |
# | `tf.keras` cannot train on several nodes, so turn the model into an Estimator | the opposite is true, because Estimator was removed (2.16) and `fit` trains on several nodes |
# | `TF_CONFIG` has a `"master"` | it has a `"chief"`, because this strategy does not know a `master` |
# | with Keras, `fit` works without further settings | it does so with Keras 2, but since 2.16 `tf.keras` is Keras 3, whose `fit` fails here; use `TF_USE_LEGACY_KERAS=1` and `tf_keras` |
# | the script uses ports 12345 and 23456 | two people on one machine would get in each other's way, so take ports that are free |
# | create the strategy before other operations, and split the GPUs of one machine with `CUDA_VISIBLE_DEVICES` | both still hold |
# | use `CollectiveCommunication.RING` | `CommunicationOptions(implementation=CommunicationImplementation.RING)` |
# </details>
#
# ## Summary
#
# * *TF_CONFIG* lists all addresses by kind, identically for all processes, and tells each process which one it is. The chief (or worker 0, if there is no
#   chief) does what must be done only once.
# * *The strategy comes first.* Then all workers run one program, in which variables start with the chief's values, gradients are summed, and losses are divided
#   by the global batch size.
# * *DATA* splits each batch, *FILE* distributes files, and *OFF* gives everything to every worker. A shuffle needs the same seed on all workers.
# * *A worker that skips a collective call* makes the others wait, unless there is a timeout. *A worker that dies* ends training for all workers, and you start
#   all of them again from the backup.
# * *All* workers write checkpoints, but only the *chief's* checkpoint is kept.
#
# **Now the lab:** you write what the strategy leaves to you. After that, unit 08 shows servers that store the variables.
#
# **References.** P. Patarasuk and X. Yuan 2009, *Bandwidth optimal all-reduce algorithms for clusters of workstations*,
# [doi:10.1016/j.jpdc.2008.09.002](https://doi.org/10.1016/j.jpdc.2008.09.002) · TensorFlow tutorials,
# [Multi-worker training with Keras](https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras) and
# [Distributed input](https://www.tensorflow.org/tutorials/distribute/input) · TensorFlow guide,
# [Distributed training](https://www.tensorflow.org/guide/distributed_training)

# %%
cluster.stop()

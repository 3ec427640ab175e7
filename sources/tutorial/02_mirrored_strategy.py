# %% [markdown] unit={"minutes": 40, "ranks": 1, "framework": "tensorflow", "title": "MirroredStrategy"}
# # 02 · MirroredStrategy: one model on several devices
#
# After this notebook you can
#
# 1. place the operations of a batch or of a model on devices by hand, and explain what is still missing for training;
# 2. create a `MirroredStrategy` and show that every replica holds the same variables;
# 3. scale a loss so that the gradient equals one device's gradient to 1e-5, for any number of replicas;
# 4. train on a distributed dataset with a custom loop and with `Model.fit`, including an uneven last batch;
# 5. name the mistakes that give a wrong number without an error message.
#
# **You need** Python, NumPy and gradient descent, and a little Keras helps. **Minutes:** 40, then the lab · **Ranks:** none.
# Every cell runs in this kernel and no cluster is started, because `MirroredStrategy` is *one process that drives several devices*.

# %% [markdown]
# ## Four devices on any machine
#
# We use `tf_keras` (Keras 2) because, unlike Keras 3, it supports `Model.fit` under `MultiWorkerMirroredStrategy` (unit 07) and
# `ParameterServerStrategy` (unit 08). The variable `TF_USE_LEGACY_KERAS` must be set before TensorFlow is imported.

# %% tags=["setup"]
import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"    # tf.keras is tf_keras
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"   # no log lines from the C++ side
from manyhands import predict, settle
from manyhands.quiet import quietly

with quietly():
    import tensorflow as tf
import numpy as np

tf.get_logger().setLevel("ERROR")
tf.config.experimental.enable_op_determinism()        # the same numbers in every run
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.keras.utils.set_random_seed(0)

# %% [markdown]
# If your machine does not have several GPUs, you can split one device into several *logical* devices, and TensorFlow treats each of them as a separate device.
# The split must happen before TensorFlow's runtime starts, so it comes before the first tensor.

# %% tags=["setup"]
REPLICAS = 4
kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
physical = tf.config.list_physical_devices(kind)
if len(physical) < REPLICAS:  # too few: split the first one into four
    part = tf.config.LogicalDeviceConfiguration(memory_limit=1024 if kind == "GPU"
                                                else None)
    tf.config.set_logical_device_configuration(physical[0], [part] * REPLICAS)
devices = [device.name for device in tf.config.list_logical_devices(kind)][:REPLICAS]
print(len(devices), "devices")

# %% [markdown]
# ## Placement by hand
#
# `with tf.device(name):` determines where the operations inside it run. Here, each device squares two of the eight numbers and adds up the squares.

# %%
def index(x):
    """Return the number of the device that holds a tensor or a variable."""
    return tf.DeviceSpec.from_string(x.device).device_index


numbers = tf.range(8)
parts = []
for device, shard in zip(devices, tf.split(numbers, REPLICAS)):
    with tf.device(device):
        parts.append(tf.reduce_sum(shard**2))
for part in parts:
    print("device", index(part), "holds", int(part))
print("sum over the devices:", int(tf.add_n(parts)), " one device:",
      int(tf.reduce_sum(numbers**2)))

# %% [markdown]
# ## A model split by its layers
#
# The model can be split, too. Here, each **layer** of a model has its own device, which also holds the layer's weights, and the whole batch passes
# through all of them. This is *model parallelism*, for a model that is too large for one device. Each layer also has its own tape, because the
# backward pass must be placed on the same devices as the forward pass. It proceeds from the last device to the first.

# %%
def layers_on(places, starts, x):
    """Run layer i on places[i], and return what each layer kept and the gradients of the
    output's sum of squares. Activations travel forward, their gradients travel back."""
    kept = []
    for place, start in zip(places, starts):
        with tf.device(place), tf.GradientTape() as tape:
            w = tf.Variable(start)
            tape.watch(x)
            y = tf.tanh(x @ w)
        kept.append((place, tape, x, w, y))
        x = y
    upstream, gradients = 2 * y, []
    for place, tape, x, w, y in reversed(kept):
        with tf.device(place):
            upstream, own = tape.gradient(y, [x, w], output_gradients=upstream)
        gradients.insert(0, own)
    return kept, gradients

# %%
draw_weights = np.random.default_rng(1)
starts = [draw_weights.normal(scale=0.2, size=size) for size in ((8, 6), (6, 5), (5, 3))]
x = tf.constant(draw_weights.normal(size=(4, 8)))
_, alone = layers_on(devices[:1] * 3, starts, x)
kept, split = layers_on(devices[:3], starts, x)
print("weights on", [index(w) for _, _, _, w, _ in kept], " outputs on",
      [index(y) for *_, y in kept], " gradients on", [index(g) for g in split])
print("same gradients as on one device:",
      all(np.array_equal(a, b) for a, b in zip(alone, split)))

# %% [markdown]
# The results agree bit for bit, because nothing is added in a different order. However, while one device computes, the other two wait. Unit 14 gives the
# waiting devices work, and units 11 to 15 are about split models.
#
# ## What data parallelism needs
#
# A sum can be split into pieces. Since the gradient of a batch is a sum over examples, it can be split, too, and this is the whole idea of data parallelism.
# For training, three things are missing, namely a **copy of the weights** on each device, the **sum of the gradients**, and the **same update** on every copy.
# In exercise 1 of the lab, you implement all three by hand, whereas here `MirroredStrategy` provides them:

# %%
from manyhands.plots import replicas as draw

draw.replicated_step([2, 2, 2, 2])

# %% [markdown]
# ## Scope, replicas, mirrored variables
#
# A **replica** is one copy of the model and of the computation on one device. Variables that you create inside `strategy.scope()` are **mirrored**, which means
# that you see one variable, of which every device holds a copy.

# %%
strategy = tf.distribute.MirroredStrategy(devices)
with strategy.scope():
    weight = tf.Variable([1, 2])

weight.assign_add([10, 10])
print(strategy.num_replicas_in_sync, "replicas,", type(weight).__name__)
for copy in strategy.experimental_local_results(weight):
    print("device", index(copy), "holds", copy.numpy())

# %% [markdown]
# One `assign_add` changed all copies. On real GPUs, only the list `devices` is different. Without a list, `MirroredStrategy()` uses every GPU that TensorFlow
# sees (to hide some of them, call `tf.config.set_visible_devices`).

# %% [markdown]
# ## The global batch: `run` and `reduce`
#
# You batch a dataset by the **global batch size**, which is the number of examples that *all* replicas together process in one step.
# `experimental_distribute_dataset` then splits each batch into one shard per replica.

# %%
dataset = tf.data.Dataset.range(8).batch(8)  # global batch: 8
for batch in strategy.experimental_distribute_dataset(dataset):
    for i, shard in enumerate(strategy.experimental_local_results(batch)):
        print("replica", i, "gets", shard.numpy())

# %% [markdown]
# `strategy.run(function, args)` calls the function once per replica, on the replica's device and with the replica's shard. It returns a `PerReplica`, which
# holds one value per replica, and `strategy.reduce` combines these values into one. Wrap both calls in a `tf.function`, because in eager mode the replicas run
# one after the other.

# %%
@tf.function
def sum_of_squares(batch):
    per_replica = strategy.run(lambda shard: tf.reduce_sum(shard**2), args=(batch,))
    return per_replica, strategy.reduce("SUM", per_replica, axis=None)


per_replica, total = sum_of_squares(batch)
print("per replica:",
      [int(value) for value in strategy.experimental_local_results(per_replica)])
print("reduced:    ", int(total))

# %% [markdown]
# The four numbers and their sum match the results computed by hand.
#
# ## Scale the loss
#
# Now we compute a real gradient, for softmax regression on 64 of scikit-learn's handwritten digits. On one device, we take the mean loss of the
# batch. Every other method must reproduce its gradient.

# %%
from manyhands.data import digits

BATCH = 64
images, labels = digits("train")
start = np.random.default_rng(0).normal(scale=0.1, size=(64, 10)).astype("float32")


def losses(weights, x, y):  # one loss per example
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x @ weights)

weights = tf.Variable(start)
with tf.GradientTape() as tape:
    loss = tf.reduce_mean(losses(weights, images[:BATCH], labels[:BATCH]))
one_device = tape.gradient(loss, weights).numpy()
print(f"loss {loss:.3f}, norm of the gradient {np.linalg.norm(one_device):.3f}")

# %% [markdown]
# Next we compute the gradient of the same batch on n replicas. Each replica has its own shard, loss and gradient. The function `scale` turns the losses of a
# replica's examples into one loss, and `reduction` determines how the replicas' gradients are combined (Keras optimizers sum them). We use
# `ReductionToOneDevice` because this kernel creates strategies of several sizes (see the last row of the table of pitfalls).

# %%
def mirrored_gradient(n, scale, reduction="SUM"):
    strategy = tf.distribute.MirroredStrategy(devices[:n],
                                              tf.distribute.ReductionToOneDevice())
    with strategy.scope():
        weights = tf.Variable(start)
    dataset = tf.data.Dataset.from_tensor_slices((images[:BATCH], labels[:BATCH])).batch(
        BATCH)
    batch = next(iter(strategy.experimental_distribute_dataset(dataset)))

    def replica_step(x, y):
        with tf.GradientTape() as tape:
            loss = scale(losses(weights, x, y))
        return tape.gradient(loss, weights)

    step = tf.function(lambda batch: strategy.reduce(reduction,
                                                     strategy.run(replica_step, batch),
                                                     axis=None))
    return step(batch).numpy()

# %% [markdown]
# **Predict, then run.** We compare three methods. In the first, each replica takes the *mean* over its own shard, as you would on one device, and the gradients
# are summed. In the second, the same gradients are averaged. In the third, each replica divides the sum over its shard by 64, and the gradients are summed.
# Which of them give one device's gradient, whatever the number of replicas?

# %%
# Run this cell to make your prediction.
predict("02-scale",
        "Which scaling gives one device's gradient of 64 rows on 1, 2 and 4 replicas?",
        ["own mean, summed", "own mean, averaged", "own sum / 64, summed",
         "two of the three"])

# %%
def times_one_device(gradient):
    """Return the factor that best maps one device's gradient to `gradient`."""
    return float(np.vdot(gradient, one_device) / np.vdot(one_device, one_device))


def part_of_the_mean(each):
    return tf.reduce_sum(each) / BATCH


sizes = (1, 2, 4)
wrong = {n: mirrored_gradient(n, tf.reduce_mean) for n in sizes}
averaged = {n: mirrored_gradient(n, tf.reduce_mean, "MEAN") for n in sizes}
right = {n: mirrored_gradient(n, part_of_the_mean) for n in sizes}
ways = {"own mean, summed": wrong, "own mean, averaged": averaged,
        "own sum / 64, summed": right}
print("replicas" + "".join(f"{name:>22}" for name in ways))
for n in sizes:
    print(f"{n:8d}" + "".join(f"{times_one_device(way[n]):22.4f}" for way in ways.values()))

# %%
# Run this cell to compare your prediction with the outcome.
def fitting():
    fit = [name for name, way in ways.items()
           if all(abs(times_one_device(way[n]) - 1) < 0.01 for n in sizes)]
    return fit[0] if len(fit) == 1 else "two of the three"

settle("02-scale", fitting)

# %%
draw.gradient_scaling(one_device, wrong, right)

# %% [markdown]
# <details><summary><b>Why?</b></summary>
#
# With n replicas, a shard has B/n of the batch's B examples. The mean over the shard divides by B/n and not by B, so each replica's gradient is n times too
# large for its part, and the sum of these gradients is n times too large, too. In the picture, the points (one for each weight) therefore lie on a line of
# slope n. Averaging over the replicas repairs the scale, but only because all shards are equally large here. The uneven last batch below will show the
# difference. If you instead divide by the **global** batch and sum, neither the number of replicas nor the size of a shard matters any more.
#
# With SGD, the wrong scale acts like a learning rate that is n times too high. With Adam, you hardly notice the wrong scale, because Adam divides by the size
# of the gradient. Gradient clipping, however, sets in as soon as the right gradient exceeds 1/n of the threshold.
# </details>
#
# TensorFlow's function for the right scale is `tf.nn.compute_average_loss(each, global_batch_size=BATCH)`. `Model.fit` scales the loss for you,
# whereas in a custom loop you must do so yourself.
#
# ## Equal to 1e-5, but not bit for bit

# %%
difference = max(np.abs(gradient - one_device).max() for gradient in right.values())
print("largest difference below 1e-5:", bool(difference < 1e-5))
print("4 replicas give the same bits:", np.array_equal(right[4], one_device))

# %% [markdown]
# Four replicas add the same 64 numbers in a different order, and the result of floating-point additions depends on their order:

# %%
a, b, c = np.float32([1e8, -1e8, 1])
print("(a + b) + c =", (a + b) + c)
print("a + (b + c) =", a + (b + c))

# %% [markdown]
# Therefore, compare distributed results with a tolerance, never with `==`.
#
# ## The uneven last batch
#
# The size of a dataset is rarely a multiple of the global batch. Here are ten numbers and a global batch of 8:

# %%
dataset = tf.data.Dataset.range(10).batch(8)
for batch in strategy.experimental_distribute_dataset(dataset):
    print([shard.numpy().tolist() for shard in strategy.experimental_local_results(batch)])

# %% [markdown]
# The last batch has 2 examples for 4 replicas, so two replicas get nothing. If one batch holds all ten numbers, it is split into shards of 3, 3, 3 and 1. What
# is its mean?

# %%
@tf.function
def means(batch):
    own = strategy.run(lambda shard: tf.reduce_mean(tf.cast(shard, tf.float32)),
                       args=(batch,))
    return strategy.reduce("MEAN", own, axis=None), strategy.reduce("MEAN", batch, axis=0)


[batch] = strategy.experimental_distribute_dataset(tf.data.Dataset.range(10).batch(10))
of_means, of_examples = means(batch)
print("mean of the replicas' means:", float(of_means))
print("mean of the examples:       ", float(of_examples), " NumPy:", np.arange(10).mean())

# %% [markdown]
# Since the number 9 was alone in its shard, it counted as much as three other numbers together. Instead of averaging averages, sum the values, count them and
# divide once, as `reduce` does if you pass `axis=0`. On an empty shard, `tf.reduce_mean` would even return `nan`, whereas the sum is correctly 0.
#
# ## A training loop
#
# The model and the optimizer are created in the scope. Inside `run`, `apply_gradients` sums the gradients over the replicas and then updates every copy of the
# weights. Because `tf.distribute.get_strategy()` returns the default strategy, which has one replica, the *same code* also trains on one device.

# %%
def build_model(width=32):
    tf.keras.utils.set_random_seed(0)
    hidden = tf.keras.layers.Dense(width, activation="relu", input_shape=(64,))
    return tf.keras.Sequential([hidden, tf.keras.layers.Dense(10)])

# %%
def make_step(strategy, model, optimizer, global_batch=BATCH):
    def replica_step(x, y):
        with tf.GradientTape() as tape:
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x))
            loss = tf.nn.compute_average_loss(each, global_batch_size=global_batch)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return tf.function(lambda batch: strategy.reduce("SUM",
                                                     strategy.run(replica_step, batch),
                                                     axis=None))

# %%
def train(strategy, epochs=3):
    with strategy.scope():
        model, optimizer = build_model(), tf.keras.optimizers.SGD(0.5)
    step = make_step(strategy, model, optimizer)
    dataset = tf.data.Dataset.from_tensor_slices((images[:1280], labels[:1280])).batch(
        BATCH)
    history = []
    for _ in range(epochs):
        history += [float(step(batch))
                    for batch in strategy.experimental_distribute_dataset(dataset)]
    return history


alone, mirrored = train(tf.distribute.get_strategy()), train(strategy)
print("loss of step    1 device   4 replicas")
for step in (0, 10, 30, 59):
    print(f"{step:12d}{alone[step]:12.3f}{mirrored[step]:13.3f}")

# %% [markdown]
# The two runs agree to the last digit shown. Four replicas did not change *what* is learnt, only *where* it is computed.
#
# ## Mixed precision: one decision for all replicas
#
# If a network computes in `float16`, the training step multiplies the loss by a *loss scale*, so that small gradients do not become 0, and afterwards divides
# the gradients by this scale. If a gradient overflows, the step must be skipped and the scale halved. *All* replicas must make this decision together, because
# a replica that steps alone no longer has the same weights as the others. `LossScaleOptimizer` decides after the gradients have been summed. In the second step
# below, only the last replica's gradient overflows.

# %%
with strategy.scope():
    w = tf.Variable([1.0])
    scaling = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.5),
                                                          initial_scale=1024.0)

def scaled_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.cast(w, tf.float16) * x) / 4
        scaled = scaling.get_scaled_loss(loss)
    gradients = scaling.get_unscaled_gradients(tape.gradient(scaled, [w]))
    scaling.apply_gradients(zip(gradients, [w]))


run_scaled = tf.function(lambda batch: strategy.run(scaled_step, args=(batch,)))
for x in ([1, 1, 1, 1], [1, 1, 1, 60000], [1, 1, 1, 1]):
    rows = tf.data.Dataset.from_tensor_slices(np.float16(x)).batch(4)
    [batch] = strategy.experimental_distribute_dataset(rows)
    run_scaled(batch)
    copies = [float(copy[0]) for copy in strategy.experimental_local_results(w)]
    print(f"x = {x}: weights {copies}, loss scale {float(scaling.loss_scale):.0f}")

# %% [markdown]
# No copy of the weight changed in the second step. With `bfloat16`, which has the range of `float32`, no loss scale is needed.
#
# ## `Model.fit`
#
# With Keras, the whole loop is a single call. Build and compile the model in the scope, and pass the plain dataset to `fit`, which distributes it. The batch of
# the dataset is the **global** batch, and so is `batch_size` if you pass arrays. The number of steps therefore does not depend on the number of replicas.

# %%
def fit(n, examples):
    strategy = tf.distribute.MirroredStrategy(devices[:n],
                                              tf.distribute.ReductionToOneDevice())
    with strategy.scope():
        model, loss = (build_model(),
                       tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        model.compile(tf.keras.optimizers.SGD(0.5), loss)
    data = tf.data.Dataset.from_tensor_slices((images[:examples], labels[:examples])).batch(
        BATCH)
    history = model.fit(data, epochs=3, verbose=0)
    return history.history["loss"], int(model.optimizer.iterations.numpy())


for n in (1, 2, 4):
    epochs, steps = fit(n, examples=128)
    print(f"replicas {n}: {steps} steps, loss per epoch",
          " ".join(f"{loss:.3f}" for loss in epochs))

# %% [markdown]
# **Predict, then run.** Now there are 150 examples, which make two full batches and a last batch of 22. Do the runs on 1, 2 and 4 replicas still agree?

# %%
# Run this cell to make your prediction.
predict("02-remainder",
        "With a last batch of 22, which runs on 1, 2 and 4 replicas have the same losses?",
        ["all three", "1 and 2 replicas", "2 and 4 replicas", "no two"])

# %%
after = {}
for n in (1, 2, 4):
    after[n], steps = fit(n, examples=150)
    print(f"replicas {n}: {steps} steps, loss per epoch",
          " ".join(f"{loss:.3f}" for loss in after[n]))

# %%
# Run this cell to compare your prediction with the outcome.
def agree():
    same = [np.allclose(after[2], after[other], atol=5e-4) for other in (1, 4)]
    return {(True, True): "all three", (True, False): "1 and 2 replicas",
            (False, True): "2 and 4 replicas", (False, False): "no two"}[tuple(same)]

settle("02-remainder", agree)

# %% [markdown]
# <details><summary><b>Why?</b></summary>
#
# `fit` divides each replica's own mean by the number of replicas and sums the quotients. If the shards are equally large, the result is the mean over the
# global batch. On two replicas, 22 examples form equal shards of 11. On four replicas, they form shards of 6, 6, 6 and 4, so we are back at the mean of means,
# in which an example in the small shard counts 1.5 times as much as the others. The effect is small in a long epoch. If it matters, drop the remainder
# (`batch(BATCH, drop_remainder=True)`), or write the loop yourself and divide by the number of examples that the batch *really* has. The training loop above
# would divide the sum over 22 examples by 64 (see exercise 5 of the lab).
# </details>
#
# ## Metrics, fine-tuning, a checkpoint
#
# A metric keeps its counts in variables, so it, too, must be created in the scope, for example by `compile`. To **fine-tune** a model, freeze the layers that
# must not change, and compile again, which gives the optimizer new variables. A **checkpoint** holds one copy of each mirrored variable, so you can read it
# with a different number of replicas.

# %%
data = tf.data.Dataset.from_tensor_slices((images[:1280], labels[:1280])).batch(BATCH)
cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
with strategy.scope():
    model = build_model()
    model.compile(tf.keras.optimizers.SGD(0.5), cross_entropy, metrics=["accuracy"])
model.fit(data, epochs=2, verbose=0)
counted = np.mean(model.predict(images[:1280], verbose=0).argmax(1) == labels[:1280])
print(f"accuracy, by the metric {model.evaluate(data, verbose=0)[1]:.4f}, counted "
      f"{counted:.4f}")
with strategy.scope():
    model.layers[0].trainable = False
    model.compile(tf.keras.optimizers.SGD(0.1), cross_entropy, metrics=["accuracy"])
before = [w.numpy() for w in model.weights]
model.fit(data, epochs=1, verbose=0)
print("moved by the fine-tuning:", [not np.array_equal(a, w.numpy())
                                    for a, w in zip(before, model.weights)])

# %%
from tempfile import TemporaryDirectory

with TemporaryDirectory() as folder:
    path = tf.train.Checkpoint(model=model,
                               optimizer=model.optimizer).write(folder + "/step")
    single = build_model()  # outside the scope: one device
    # the optimizer in the checkpoint is not read
    tf.train.Checkpoint(model=single).read(path).expect_partial()
print("read on one device:",
      all(np.array_equal(a, b) for a, b in zip(single.get_weights(), model.get_weights())))

# %% [markdown]
# ## The same weights as a single process
#
# Most units from 01 to 10 train the same small network, each with a different system, and check whether training ends with the same weights as a single
# process. The network and the task are defined in `manyhands.track`. The 1500 digits form six batches of 250 rows, and ten passes make 60 steps in `float64`.
# The objective contains a penalty on the weights (weight decay). A training run without any framework serves as the reference. Here, four replicas get 63, 63,
# 63 and 61 rows. Since the penalty belongs to no row, `scale_regularization_loss` gives each replica a quarter of it.

# %%
from manyhands import track

def make_track_step(model, optimizer):
    def replica_step(x, y):
        with tf.GradientTape() as tape:
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x))
            penalty = (track.DECAY / 2
                       * tf.add_n([tf.reduce_sum(v**2) for v in model.trainable_variables]))
            loss = (tf.nn.compute_average_loss(each, global_batch_size=track.ROWS)
                    + tf.nn.scale_regularization_loss(penalty))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables),
                                      model.trainable_variables))

    return tf.function(lambda batch: strategy.run(replica_step, batch))

# %%
with strategy.scope():
    model, optimizer = track.keras_network(), tf.keras.optimizers.SGD(track.RATE)
step = make_track_step(model, optimizer)
dataset = tf.data.Dataset.from_tensor_slices(track.data()).batch(track.ROWS).repeat(10)
for batch in strategy.experimental_distribute_dataset(dataset):
    step(batch)
reference, _ = track.one_process()
print(int(optimizer.iterations.numpy()), "steps")
print(track.table("02",
                  {"MirroredStrategy": track.distance(track.numbers_of(model), reference)}))

# %% [markdown]
# The weights agree to 1e-12, because only the order of the additions differs. Unit 01 derives how many matching digits you can expect, and why the mean of
# means gives different weights. The table grows from unit to unit.
#
# ## Throughput
#
# We measure examples per second for a larger model with a global batch of 1024. Each figure is the median of 15 steps after a warm-up.

# %%
def wide_step(n, examples=1024):
    strategy = tf.distribute.MirroredStrategy(devices[:n],
                                              tf.distribute.ReductionToOneDevice())
    with strategy.scope():
        model, optimizer = build_model(width=2048), tf.keras.optimizers.SGD(0.01)
    data = tf.data.Dataset.from_tensor_slices((images[:examples], labels[:examples])).batch(
        examples)
    batch = next(iter(strategy.experimental_distribute_dataset(data)))
    return make_step(strategy, model, optimizer, global_batch=examples), batch

# %% tags=["measured"]
from time import perf_counter

for n in (1, 2, 4):
    step, batch = wide_step(n)
    times_s = []
    for _ in range(20):
        begin = perf_counter()
        float(step(batch))
        times_s.append(perf_counter() - begin)
    rate = 1024 / np.median(times_s[5:])
    print(f"replicas {n}: {rate:8.0f} examples/s")

# %% [markdown]
# Logical devices add no hardware, because they share one processor or one GPU. The work stays the same, but the pieces are smaller, and the sum over the
# replicas is extra work, so expect no speed-up. Logical devices are for *learning and testing*. On n physical GPUs, the computation really is shared. A step
# then takes about as long as the slowest replica's shard plus the all-reduce, or less if the two overlap. More GPUs pay off if a replica's shard still keeps
# its GPU busy. For this reason, the global batch usually grows with the number of replicas, and the learning rate with it (Goyal et al. 2017; unit 17).
#
# <details><summary>Why logical devices may be faster all the same</summary>
#
# If you see a speed-up, some cores were idle before, because we allow each operation only one thread, whereas several replicas run several operations at a
# time.
# </details>

# %% [markdown]
# > **On GPUs.** One process drives all GPUs of the machine, with one replica on each. A step returns before the GPUs have finished, so the timings above are
# > right only because `float(...)` fetches the result. TensorFlow reserves nearly all the memory of every GPU that it sees, unless you call
# > `tf.config.experimental.set_memory_growth`. Unit 07 continues with several machines.

# %% [markdown]
# ## The pitfalls
#
# **A variable created outside the scope** is not mirrored. All replicas share this one variable, each of them changes it, and there is no warning:

# %%
counter = tf.Variable(0)  # outside the scope
with strategy.scope():
    mirrored_counter = tf.Variable(0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)


@tf.function
def count_steps():
    strategy.run(lambda: (counter.assign_add(1), mirrored_counter.assign_add(1)))


count_steps()
print("after one step: outside", counter.numpy(), " in the scope", mirrored_counter.numpy())

# %% [markdown]
# **Batch normalisation** computes its statistics from the replica's own shard. Below, the shards are (0, 4), (0, 4), (10, 14) and (10, 14):

# %%
values = np.float32([0, 4, 0, 4, 10, 14, 10, 14])[:, None]
[batch] = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(
    values).batch(8))
for synchronized in (False, True):
    with strategy.scope():
        norm = tf.keras.layers.BatchNormalization(momentum=0.0, synchronized=synchronized)
        norm.build((None, 1))
    tf.function(lambda: strategy.run(norm, args=(batch,), kwargs={"training": True}))()
    print(f"synchronized {synchronized}: mean {norm.moving_mean.numpy()}, variance "
          f"{norm.moving_variance.numpy()}")
print(f"the whole batch, by NumPy: mean {values.mean(0)}, variance {values.var(0)}")

# %% [markdown]
# Each shard has variance 4, so the statistics miss the spread *between* the shards. `synchronized=True` computes them over all replicas, at the price of an
# all-reduce in every such layer. Use this option if shards are small.
#
# **Dropout** in `tf_keras` draws a different mask on each replica. Keras 3, which is the default `tf.keras`, keeps the seed in a mirrored variable, which has
# the same value on all replicas. **Predict, then run.** We start a separate process for each version of Keras. In which of them are the replicas' masks equal?

# %%
# Run this cell to make your prediction.
predict("02-dropout", "In which Keras do all replicas draw the same dropout mask?",
        ["in both", "in tf_keras", "in Keras 3", "in neither"])

# %%
program = """
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
four = [tf.config.LogicalDeviceConfiguration()] * 4
tf.config.set_logical_device_configuration(cpu, four)
devices = [device.name for device in tf.config.list_logical_devices("CPU")]
strategy = tf.distribute.MirroredStrategy(devices)
with strategy.scope():
    layer = tf.keras.layers.Dropout(0.5)
step = tf.function(lambda: strategy.run(lambda: layer(tf.ones(64), training=True)))
masks = [mask.numpy().tolist() for mask in strategy.experimental_local_results(step())]
equal = all(mask == masks[0] for mask in masks)
print("the masks of", len(masks), "replicas are equal:", equal)
"""

# %%
import subprocess
import sys

said = {}
for name, legacy in (("tf_keras", "1"), ("Keras 3", "0")):
    chosen = {**os.environ, "TF_USE_LEGACY_KERAS": legacy, "CUDA_VISIBLE_DEVICES": ""}
    said[name] = subprocess.run([sys.executable, "-c", program], env=chosen,
                                capture_output=True, text=True).stdout
    print(f"{name:<8}", said[name], end="")

# %%
# Run this cell to compare your prediction with the outcome.
EQUAL = {(True, True): "in both", (True, False): "in tf_keras",
         (False, True): "in Keras 3", (False, False): "in neither"}
settle("02-dropout", lambda: EQUAL["True" in said["tf_keras"], "True" in said["Keras 3"]])

# %% [markdown]
# With equal masks, four replicas apply the same noise to different examples in every step. Unit 01 shows the same mistake in PyTorch.
#
# | pitfall | what you see | remedy |
# |---|---|---|
# | variable created outside the scope | a count n times too large; Keras raises `ValueError` when the optimizer meets it | create model, optimizer and metrics in the scope |
# | loss divided by the size of the shard | gradient n times too large | divide by the global batch |
# | penalty on the weights in a custom loop | every replica adds the whole penalty: n times too much | `tf.nn.scale_regularization_loss` |
# | mean of the replicas' means | wrong as soon as shards are uneven | sum, count, divide once |
# | batch normalisation | statistics of a shard, not of the batch | `synchronized=True`, or larger shards |
# | dropout and other random layers | `tf_keras`: each replica draws its own mask, so a run on n replicas differs from a run on one. Keras 3: all replicas have the same mask | `tf_keras`: nothing to repair, but switch it off to compare. Keras 3: `tf.nn.experimental.stateless_dropout`, with the replica's number in its seed |
# | learning rate | more replicas, larger global batch, fewer steps: slower learning | scale the rate with the global batch, warm up (unit 17) |
# | `batch_size` in `fit` | with n replicas and an unchanged batch, each shard is n times smaller | `batch_size=per_replica * strategy.num_replicas_in_sync` |
# | an input pipeline that is too slow | the replicas wait, so more of them give no more examples per second | `map(..., num_parallel_calls=tf.data.AUTOTUNE)`, `batch`, then `prefetch(tf.data.AUTOTUNE)` |
# | shuffle after batching | the same examples are always in a batch together | `dataset.shuffle(...).batch(global_batch)`, then distribute |
# | `distribute_datasets_from_function` | here *you* batch, by the replica's share | `context.get_per_replica_batch_size(global_batch)` |
# | two strategies of different size in one process | `Collective ops is aborted ... joining a group with size4, but that group has size 2` | one strategy per process, or `ReductionToOneDevice()` as above |
#
# ## What is underneath, and related strategies
#
# The sum over the replicas is an **all-reduce**. `MirroredStrategy` performs it with TensorFlow's `CollectiveAllReduce`, which uses NCCL between
# physical GPUs and TensorFlow's own ring between CPUs or logical GPUs. You build such a ring in unit 04. `ReductionToOneDevice` instead sums on one
# device and copies the result back.
#
# * **`TPUStrategy`** is the counterpart for TPUs (not run here), with the same scope, `run`, `reduce`, `fit` and scaling of the loss. The replicas are TPU
#   cores, and XLA compiles the step for fixed shapes, so keep all batches the same size (`drop_remainder=True`).
#
#   ```python
#   resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
#   tf.config.experimental_connect_to_cluster(resolver)
#   tf.tpu.experimental.initialize_tpu_system(resolver)
#   strategy = tf.distribute.TPUStrategy(resolver)
#   ```
# * **`MultiWorkerMirroredStrategy`** spreads the same replicas over several machines, whose processes find each other through `TF_CONFIG` (unit 07).
# * **`ParameterServerStrategy`** keeps the variables on servers, and the workers do not wait for each other (unit 08).
#
# **The state of `tf.distribute` today.** It works with TensorFlow 2.21, and this course runs three of its strategies. With Keras 3,
# `MirroredStrategy` and its `fit` work, while the strategies of units 07 and 08 need a custom training loop. Whether that will change is open. In
# 2024, Keras's author wrote that this question was for Keras's team at Google to answer, and for several machines he advised using Keras 3 on JAX
# ([Keras issue 20585](https://github.com/keras-team/keras/issues/20585), still open when we last looked). Keras's new interface,
# `keras.distribution`, is for JAX (in 3.15, its file for TensorFlow begins with "do not use"). In JAX, the step above needs no strategy, because
# arrays carry a *sharding* and the compiler of `jit` inserts the all-reduce
# ([JAX, Distributed arrays](https://docs.jax.dev/en/latest/notebooks/Distributed_arrays_and_automatic_parallelization.html)).
#
# <details><summary><b>Reading older code?</b> What its names are called today</summary>
#
# | then | now |
# |---|---|
# | `tf.contrib.distribute.MirroredStrategy(num_gpus=2)` | `tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])` |
# | `tf.contrib.distribute.CollectiveAllReduceStrategy` | `tf.distribute.MultiWorkerMirroredStrategy` |
# | `tf.contrib.distribute.ParameterServerStrategy` | `tf.distribute.ParameterServerStrategy`, with a different programming model |
# | tower, `call_for_each_tower`, `experimental_run_v2` | replica, `strategy.run` |
# | `cross_tower_ops=AllReduceCrossTowerOps(...)` | `cross_device_ops=tf.distribute.NcclAllReduce()` and others; the default is nearly always good enough |
# | `tf.estimator.RunConfig(train_distribute=strategy)` | removed with `tf.estimator` (TensorFlow 2.16); use `Model.fit` in the scope |
# | `tf.keras.utils.multi_gpu_model` | removed (2020); use `MirroredStrategy` |
# | Keras 2 as `tf.keras` | `tf_keras`, with `TF_USE_LEGACY_KERAS=1`; by default `tf.keras` is Keras 3 |
# </details>

# %% [markdown]
# ## What you can do now
#
# 1. *Placement by hand:* `with tf.device(name)` places operations. Training also needs copies of the weights, the sum of the gradients, and the same
#    update on every copy.
# 2. *Mirrored variables:* `strategy.scope()` mirrors the variables created in it. `experimental_local_results(variable)` returns every copy.
# 3. *Scaling:* Divide the sum of the examples' losses by the global batch, so that only rounding depends on the number of replicas.
# 4. *Uneven batches:* Sum losses, count examples, and divide once. `fit` averages the replicas' means, which is slightly wrong for an uneven last batch.
# 5. *Silent mistakes:* See the table above.
#
# **Go on** with the lab `work/02_mirrored_strategy`, then unit 03 (the same in PyTorch, with threads), unit 06 (with one process per device), unit 07
# (on several machines) and unit 17 (large batches).
#
# **References.** M. Abadi et al. 2016, *TensorFlow: A System for Large-Scale Machine Learning*,
# [arXiv:1605.08695](https://arxiv.org/abs/1605.08695) · P. Goyal et al. 2017, *Accurate, Large Minibatch SGD*,
# [arXiv:1706.02677](https://arxiv.org/abs/1706.02677) · S. Ioffe and C. Szegedy 2015, *Batch Normalization*,
# [arXiv:1502.03167](https://arxiv.org/abs/1502.03167) · P. Patarasuk and X. Yuan 2009, *Bandwidth optimal all-reduce algorithms for clusters of
# workstations*,
# [doi:10.1016/j.jpdc.2008.09.002](https://doi.org/10.1016/j.jpdc.2008.09.002) · TensorFlow guide,
# [Distributed training](https://www.tensorflow.org/guide/distributed_training)

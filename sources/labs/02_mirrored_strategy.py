# %% [markdown] unit={"minutes": 45, "ranks": 1, "framework": "tensorflow", "title": "MirroredStrategy"}
# # 02 Lab: one model on several devices
#
# You distribute a training step over devices, first by hand and then with `MirroredStrategy`. Both ways give the same numbers as a single device. At the end
# you can
#
# * place the forward and backward passes of a shard on a device of your choice, and add up the gradients;
# * find out on which device a layer's backward pass runs, and place it on the device where the layer's forward pass ran;
# * fine-tune with `Model.fit` on any number of replicas, with the right scope, metric, global batch and learning rate;
# * write a loss that does not depend on the number of replicas;
# * write a training loop that is correct even for the last, uneven batch.
#
# **Before:** the tutorial of this unit, or equivalent knowledge of `tf.distribute`. **Minutes:** 45 · **Ranks:** none, one kernel with four
# devices · **Points:** 12.
#
# Every cell runs in this kernel. You can do the exercises in any order, because no check depends on another exercise. Below each check, you see the output
# to aim for, and when you run the check, you see your own output.

# %% tags=["setup"]
import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"    # tf.keras is tf_keras, see the tutorial
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from manyhands.quiet import quietly

with quietly():
    import tensorflow as tf
import numpy as np
from manyhands import hint
from manyhands.checks import mirrored_strategy as check

tf.get_logger().setLevel("ERROR")

# %% tags=["setup"]
tf.config.experimental.enable_op_determinism()
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.keras.utils.set_random_seed(0)
kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
physical = tf.config.list_physical_devices(kind)
if len(physical) < 4:  # too few: split the first one into four
    part = tf.config.LogicalDeviceConfiguration(memory_limit=1024 if kind == "GPU"
                                                else None)
    tf.config.set_logical_device_configuration(physical[0], [part] * 4)
print(len(tf.config.list_logical_devices(kind)[:4]), "devices")

# %% [markdown]
# ## 1. A step by hand
#
# There is no strategy yet, so you do its work yourself. Split the batch into one shard per device, run the forward **and** backward passes of
# each shard on its device, add up the gradients, and update the weights once.
#
# *Difficulty ●●○, 10 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# The gradient of the mean over the batch is a sum over examples, divided by the size of the *whole* batch. An operation runs on the device that
# the innermost `with tf.device(...)` names when the operation is *called*, and this is true of `tape.gradient`, too. If you need more help, run
# `hint("02-by-hand")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="by-hand"
def hand_made_step(devices: list[str], weights: tf.Variable, x: np.ndarray, y: np.ndarray,
                   example_losses, learning_rate: float) -> tf.Tensor:
    """Take one step of gradient descent on the mean loss of the batch (x, y), which is
    split over `devices`.

    x is [examples, features] and y is [examples]. The number of examples need not be a
    multiple of the number of devices. `example_losses(weights, x, y)` returns one loss per
    example. Call it once per device, on at most ceil(examples / number of devices)
    examples. Change `weights` in place, and return the gradient of the mean loss.
    """
    ### BEGIN SOLUTION
    gradients = []
    for device, own_x, own_y in zip(devices, np.array_split(x, len(devices)),
                                    np.array_split(y, len(devices))):
        with tf.device(device):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(example_losses(weights, own_x, own_y)) / len(x)
            gradients.append(tape.gradient(loss, weights))
    gradient = tf.add_n(gradients)
    weights.assign_sub(learning_rate * gradient)
    return gradient
    ### END SOLUTION

# %% tags=["check"] grade_id="by-hand-check" points=3
check.by_hand(hand_made_step)

# %% [markdown]
# ## 2. Find the bug: a model split by its layers
#
# In this exercise the model is split instead of the batch. There are at least as many layers as devices. The first device of the list `devices` must take the
# first layers, the second device the next ones, and so on, with the layers divided as `np.array_split` would divide them. The check passes the devices in a
# random order. The weights, the forward pass **and** the backward pass of a layer belong on the layer's device. `layer(w, x)` returns a layer's output, and the
# backward pass begins with the gradient of the sum of the output's squares.
#
# A colleague wrote the function below. It runs without an error, and a test against one device passes. On four GPUs, however, the last GPU runs
# out of memory in the backward pass, and a profiler counts more copies between the GPUs than the three that four blocks of layers need in the
# forward pass.

# %%
def faulty_gradients(devices, starts, x, layer):
    """Return the gradients of the output's sum of squares for every layer's weights."""
    weights, activations = [], [x]
    with tf.GradientTape() as tape:
        for i, start in enumerate(starts):
            with tf.device(devices[i % len(devices)]):
                weights.append(tf.Variable(start))
                activations.append(layer(weights[i], activations[i]))
        with tf.device(devices[-1]):
            loss = tf.reduce_sum(activations[-1]**2)
    with tf.device(devices[-1]):
        return tape.gradient(loss, weights)

# %% [markdown]
# The next cell shows on which device each layer computes its forward and its backward pass, and whether the gradients equal one device's
# gradients. Which device numbers should the first two lines show for six layers on four devices?

# %%
def evidence(split):
    """Print where six layers on four devices are computed, by device number."""
    forward, backward = [], {}

    def layer(w, x):
        y, i = tf.tanh(x @ w), len(forward)
        forward.append(int(y.device[-1]))  # the name ends in the device's number

        @tf.custom_gradient
        def watched(y):
            def passed(upstream):
                upstream = tf.identity(upstream)
                backward[i] = int(upstream.device[-1])
                return upstream
            return tf.identity(y), passed

        return watched(y)

    draw = np.random.default_rng(0)
    starts, x = [draw.normal(size=(4, 4)) for _ in range(6)], tf.constant(
        draw.normal(size=(2, 4)))
    found, alone = split(DEVICES, starts, x, layer), faulty_gradients(
        DEVICES[:1], starts, x, lambda w, x: tf.tanh(x @ w))
    print("forward on ", forward)
    print("backward on", [backward.get(i) for i in range(6)])
    print("same gradients as on one device:",
          all(np.allclose(a, b) for a, b in zip(alone, found)))

DEVICES = [device.name for device in tf.config.list_logical_devices(kind)[:4]]
evidence(faulty_gradients)

# %% [markdown]
# Write the function as it should be, and run `evidence(split_gradients)` in a separate cell.
#
# *Difficulty ●●○, 8 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Compare the two lists of device numbers with what the first paragraph asks for. Which of the two lists can be repaired by a different choice of `devices[...]`
# alone, and which cannot? If you need more help, run `hint("02-split")`.
# </details>

# %% tags=["solution"] grade_id="split"
def split_gradients(devices: list[str], starts: list[np.ndarray], x: tf.Tensor,
                    layer) -> list[tf.Tensor]:
    """Return the gradients of the sum of squares of the model's output with respect to the
    weights of every layer, in the order of the layers.

    `starts` holds the layers' weights. `layer(w, x)` is called once for each layer, on the
    layer's device, and its backward pass runs there, too. The batch `x` goes through all
    layers.
    """
    ### BEGIN SOLUTION
    places = [device for device, own in zip(devices,
                                            np.array_split(np.arange(len(starts)),
                                                           len(devices))) for _ in own]
    kept = []
    for device, start in zip(places, starts):
        with tf.device(device), tf.GradientTape() as tape:
            w = tf.Variable(start)
            tape.watch(x)
            y = layer(w, x)
        kept.append((device, tape, w, x, y))
        x = y
    upstream, gradients = 2 * x, []
    for device, tape, w, x, y in reversed(kept):
        with tf.device(device):
            gradient, upstream = tape.gradient(y, [w, x], output_gradients=upstream)
        gradients.insert(0, gradient)
    return gradients
    ### END SOLUTION

# %% tags=["check"] grade_id="split-check" points=2
check.split(split_gradients)

# %% [markdown]
# ## 3. Fine-tune with `Model.fit`
#
# `build_model()` returns a trained model, whose last layer you train further on all replicas. Build and compile the model so that every variable is mirrored,
# freeze all layers except the last, and let `fit` compute the accuracy of each epoch.
#
# A batch size of `per_replica_batch` and a learning rate of `base_rate` are known to work on **one** device. Keep each replica's share of the batch as it is,
# and scale the rate with the global batch, so that a batch k times as large is trained with k times the rate.
#
# *Difficulty ●●○, 7 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# What does `batch_size` in `fit` count? In which order does `fit` take the examples of an array by default? If you need more help, run
# `hint("02-fit")`.
# </details>

# %% tags=["solution"] grade_id="fit"
def fine_tune(strategy: tf.distribute.Strategy, build_model, x: np.ndarray, y: np.ndarray,
              per_replica_batch: int, base_rate: float, epochs: int) -> tuple:
    """Return `(model, accuracies)`, which are the model after `epochs` epochs of plain SGD
    and the accuracy of each epoch as `fit` counts it.

    The model returns logits, and the loss is the sparse categorical cross-entropy. The
    examples are taken in their order. Only the last layer is trained.
    """
    ### BEGIN SOLUTION
    replicas = strategy.num_replicas_in_sync
    with strategy.scope():
        model = build_model()
        for layer in model.layers[:-1]:
            layer.trainable = False
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD(base_rate * replicas), loss,
                      metrics=["accuracy"])
    history = model.fit(x, y, batch_size=per_replica_batch * replicas, epochs=epochs,
                        shuffle=False, verbose=0)
    return model, history.history["accuracy"]
    ### END SOLUTION

# %% tags=["check"] grade_id="fit-check" points=2
check.fit(fine_tune)

# %% [markdown]
# ## 4. The loss of a replica
#
# `strategy.run` will call the function that you write here on every replica. The losses that the replicas return are *summed*, and so are their gradients. The
# check runs the function on equal shards, on unequal shards, and with fewer examples than replicas, so that some shards are empty.
#
# *Difficulty ●●○, 5 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# What is the mean of an empty shard, and what is its sum? If you need more help, run `hint("02-replica-loss")`.
# </details>

# %% tags=["solution"] grade_id="replica-loss"
def replica_loss(example_losses: tf.Tensor, global_batch: int) -> tf.Tensor:
    """Return this replica's part of the loss, so that the sum over the replicas is the mean
    over the global batch.

    `example_losses` is [examples on this replica] and may be empty. `global_batch` counts
    the examples on all replicas.
    """
    ### BEGIN SOLUTION
    return tf.reduce_sum(example_losses) / global_batch
    ### END SOLUTION

# %% tags=["check"] grade_id="replica-loss-check" points=2
check.replica_loss(replica_loss)

# %% [markdown]
# ## 5. An epoch
#
# Write the whole training loop, which distributes the data, runs the step on every replica, reduces the losses and updates the weights. The loss of a step is
# the mean over the examples that the batch *really* has, even in the last, smaller batch. The model returns logits, and the loss is the softmax cross-entropy.
#
# *Difficulty ●●●, 12 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Each replica knows only how large its own shard is. However, `tf.distribute.get_replica_context().all_reduce("SUM", ...)` sums a number over
# the replicas. If you need more help, run `hint("02-epoch")`.
# </details>

# %% tags=["solution"] grade_id="epoch"
def train_epoch(strategy: tf.distribute.Strategy, model, optimizer,
                x: np.ndarray, y: np.ndarray, global_batch: int) -> list[float]:
    """Train on all examples once, in their order, `global_batch` at a time, and return the
    loss of every step.

    Model and optimizer were created in the strategy's scope. The last batch may be smaller.
    Step by step, weights and losses equal the ones that a single device computes when it
    takes the mean over the same batch.
    """
    ### BEGIN SOLUTION
    def replica_step(x, y):
        examples = tf.distribute.get_replica_context().all_reduce("SUM", tf.shape(x)[0])
        with tf.GradientTape() as tape:
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x))
            loss = tf.reduce_sum(each) / tf.cast(examples, each.dtype)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    step = tf.function(lambda batch: strategy.reduce("SUM",
                                                     strategy.run(replica_step, batch),
                                                     axis=None))
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(global_batch)
    return [float(step(batch))
            for batch in strategy.experimental_distribute_dataset(dataset)]
    ### END SOLUTION

# %% tags=["check"] grade_id="epoch-check" points=3
check.epoch(train_epoch)

# %% [markdown]
# ## What you can do now
#
# You have written what a strategy does (exercise 1) and what it does not do (exercise 2), and you have let `fit` do the work (exercise 3). You have also used a
# strategy where it leaves the decisions to you, namely those about the scale of the loss and the uneven batch (exercises 4 and 5).
#
# **Go on** with an experiment in the tutorial's training loop. Raise the global batch with the number of replicas, and compare the losses after three epochs
# with the old learning rate and with the scaled rate. After that, unit 07 trains on several machines.
#
# **References.** TensorFlow guide, [Custom training with
# tf.distribute.Strategy](https://www.tensorflow.org/tutorials/distribute/custom_training) ·
# P. Goyal et al. 2017, *Accurate, Large Minibatch SGD*, [arXiv:1706.02677](https://arxiv.org/abs/1706.02677)

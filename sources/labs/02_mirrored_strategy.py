# %% [markdown] unit={"minutes": 35, "ranks": 1, "framework": "tensorflow", "title": "MirroredStrategy"}
# # 02 Lab: one model on several devices
#
# You share a training step out over devices by hand, then let `MirroredStrategy` do it, and get one device's numbers each time. At the end
# you can
#
# * place forward and backward of a shard on a device of your choice, and add up the gradients;
# * plan global batch, steps and learning rate for any number of replicas;
# * make variables that are mirrored, and a loss that does not depend on the number of replicas;
# * write a training loop that is right to the last, uneven batch.
#
# **Before:** the tutorial of this unit, or as much `tf.distribute` as is in it. **Minutes:** 35. **Ranks:** none, one kernel with four devices.
# **Points:** 10.
#
# Every cell runs in this kernel. Each exercise stands on its own: a check does not need the exercise before it. Below each check you see
# the output to aim at; run the check, and see your own.

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
if len(physical) < 4:  # too few: cut the first one into four
    part = tf.config.LogicalDeviceConfiguration(memory_limit=1024 if kind == "GPU" else None)
    tf.config.set_logical_device_configuration(physical[0], [part] * 4)
print(len(tf.config.list_logical_devices(kind)[:4]), "devices")

# %% [markdown]
# ## 1. A step by hand
#
# No strategy yet. Cut the batch into one shard per device, run forward **and** backward of each shard on its device, add up the
# gradients, update the weights once.
#
# *Difficulty ●●○, 10 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# The gradient of the mean over the batch is a sum over examples, divided by the size of the *whole* batch. And an operation runs where
# the innermost `with tf.device(...)` says when it is *called*: that holds for `tape.gradient` too. For more, run
# `hint("02-by-hand")` in a cell of its own.
# </details>

# %% tags=["solution"] grade_id="by-hand"
def hand_made_step(devices: list[str], weights: tf.Variable, x: np.ndarray, y: np.ndarray,
                   example_losses, learning_rate: float) -> tf.Tensor:
    """One step of gradient descent on the mean loss of the batch (x, y), shared by `devices`.

    x is [examples, features], y is [examples]; the number of devices need not divide `examples`.
    `example_losses(weights, x, y)` gives one loss per example. Call it once per device, on at
    most ceil(examples / number of devices) examples. Changes `weights` in place and returns the
    gradient of the mean loss.
    """
    ### BEGIN SOLUTION
    gradients = []
    for device, own_x, own_y in zip(devices, np.array_split(x, len(devices)), np.array_split(y, len(devices))):
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
# ## 2. Plan a run
#
# A batch of `per_replica_batch` and a learning rate of `base_rate` are known to work on one device. Now there are `replicas` of them.
#
# *Difficulty ●○○, 5 minutes, 1 point*
#
# <details><summary>Hint</summary>
#
# A shard is at most ceil(examples in this batch / replicas). In the tutorial 10 examples gave 3, 3, 3, 1, and 2 gave 1, 1, 0, 0.
# For more, `hint("02-plan")`.
# </details>

# %% tags=["solution"] grade_id="plan"
def make_plan(examples: int, per_replica_batch: int, replicas: int, base_rate: float) -> dict:
    """What one epoch looks like, with every example used.

    Returns a dict: `global_batch`; `steps`, the number of steps in an epoch; `last_shards`, a
    list with the number of examples that each replica gets in the last step, in the order of the
    replicas; `learning_rate`, by the linear scaling rule: k times the batch, k times the rate.
    """
    ### BEGIN SOLUTION
    global_batch = per_replica_batch * replicas
    steps = -(-examples // global_batch)
    last = examples - (steps - 1) * global_batch
    share = -(-last // replicas)
    return {
        "global_batch": global_batch,
        "steps": steps,
        "last_shards": [max(0, min(share, last - i * share)) for i in range(replicas)],
        "learning_rate": base_rate * replicas,
    }
    ### END SOLUTION

# %% tags=["check"] grade_id="plan-check" points=1
check.plan(make_plan)

# %% [markdown]
# ## 3. In the scope
#
# Make a model and its optimizer so that all their variables are mirrored.
#
# *Difficulty ●○○, 3 minutes, 1 point*
#
# <details><summary>Hint</summary>
#
# An optimizer has variables too: its step counter, for one. For more, `hint("02-scope")`.
# </details>

# %% tags=["solution"] grade_id="scope"
def build_mirrored(strategy: tf.distribute.Strategy, build_model, learning_rate: float) -> tuple:
    """Return `(model, optimizer)`, every variable mirrored.

    The model is what `build_model()` gives, the optimizer a `tf.keras.optimizers.SGD`.
    """
    ### BEGIN SOLUTION
    with strategy.scope():
        return build_model(), tf.keras.optimizers.SGD(learning_rate)
    ### END SOLUTION

# %% tags=["check"] grade_id="scope-check" points=1
check.scope(build_mirrored)

# %% [markdown]
# ## 4. The loss of a replica
#
# `strategy.run` will call this on every replica. The losses that the replicas return, and their gradients, are *summed*. The check runs it on
# equal shards, on unequal ones, and with fewer examples than replicas.
#
# *Difficulty ●●○, 5 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# What is the mean of an empty shard? What is its sum? For more, `hint("02-replica-loss")`.
# </details>

# %% tags=["solution"] grade_id="replica-loss"
def replica_loss(example_losses: tf.Tensor, global_batch: int) -> tf.Tensor:
    """This replica's part of the loss: summed over the replicas it is the mean over the global batch.

    `example_losses` is [examples on this replica], perhaps empty; `global_batch` counts the
    examples on all replicas.
    """
    ### BEGIN SOLUTION
    return tf.reduce_sum(example_losses) / global_batch
    ### END SOLUTION

# %% tags=["check"] grade_id="replica-loss-check" points=2
check.replica_loss(replica_loss)

# %% [markdown]
# ## 5. An epoch
#
# The whole loop: distribute the data, run, reduce, update. The loss of a step is the mean over the examples that are *there*, in the last,
# smaller batch too. The model gives logits; the loss is the softmax cross-entropy.
#
# *Difficulty ●●●, 12 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Each replica knows the size of its own shard only. `tf.distribute.get_replica_context().all_reduce("SUM", ...)` adds a number up over the
# replicas. For more, `hint("02-epoch")`.
# </details>

# %% tags=["solution"] grade_id="epoch"
def train_epoch(strategy: tf.distribute.Strategy, model, optimizer,
                x: np.ndarray, y: np.ndarray, global_batch: int) -> list[float]:
    """Train on all examples once, in their order, `global_batch` at a time; the loss of every step.

    Model and optimizer were made in the strategy's scope. The last batch may be smaller. Step by
    step, weights and losses are those of one device that takes the mean over the same batch.
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

    step = tf.function(lambda batch: strategy.reduce("SUM", strategy.run(replica_step, batch), axis=None))
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(global_batch)
    return [float(step(batch)) for batch in strategy.experimental_distribute_dataset(dataset)]
    ### END SOLUTION

# %% tags=["check"] grade_id="epoch-check" points=3
check.epoch(train_epoch)

# %% [markdown]
# ## What you can do now
#
# You have written what a strategy does (1), and used one where it leaves the thinking to you: the scale of the loss and the uneven batch (4, 5).
#
# **Go on** with numbers of your own: in the tutorial's training loop, raise the global batch with the number of replicas, and see what
# three epochs then reach, with the old learning rate and with the scaled one. Then unit 07: the same on several machines.
#
# **References.** TensorFlow guide, [Custom training with tf.distribute.Strategy](https://www.tensorflow.org/tutorials/distribute/custom_training) ·
# P. Goyal et al. 2017, *Accurate, Large Minibatch SGD*, [arXiv:1706.02677](https://arxiv.org/abs/1706.02677)

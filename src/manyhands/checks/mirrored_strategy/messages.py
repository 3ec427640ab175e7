"""The messages of unit 02's checks: what each criterion asks for, the mistakes, and the hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "by-hand": {
        "placement": (
            1,
            "every device runs the forward and backward passes of one shard, and no more",
        ),
        "gradient": (
            1,
            (
                "the returned gradient equals one device's gradient, to 1e-5, for an even and an "
                "uneven batch"
            ),
        ),
        "update": (
            1,
            "the weights took one step of gradient descent, for an even and an uneven batch",
        ),
    },
    "split": {
        "placement": (1, "every layer runs its forward and backward passes on its device"),
        "gradients": (
            1,
            (
                "after a repair, the gradients equal one device's gradients, to 1e-5, in the order "
                "of the layers"
            ),
        ),
    },
    "fit": {
        "fit": (
            2,
            (
                "all variables are mirrored, only the last layer has moved, to the weights that one"
                " device computes, and the accuracies are fit's own"
            ),
        ),
    },
    "replica-loss": {
        "loss": (
            1,
            "the summed loss equals one device's loss, to 1e-5, for even, uneven and empty shards",
        ),
        "gradient": (
            1,
            (
                "the summed gradient equals one device's gradient, to 1e-5, for even, uneven and "
                "empty shards"
            ),
        ),
    },
    "epoch": {
        "shards": (1, "every example goes through the model once, on the replica that holds it"),
        "losses": (
            1,
            (
                "each step has one loss, which equals one device's loss, to 1e-5, even for the "
                "uneven last batch"
            ),
        ),
        "weights": (1, "the weights after the epoch equal one device's weights, to 1e-4"),
    },
}

MISTAKES: Mistakes = {
    "devices": (
        "There are {found} devices, but this check needs {needed}. Restart the kernel, and run all "
        "cells from the top."
    ),
    "not a gradient": "The result must be a tensor with the shape of the weights, {shape}.",
    "not a number": (
        "The result contains nan, perhaps because the mean over an empty shard is nan, whereas its "
        "sum is 0. Sum first, and then divide by the global batch."
    ),
    "n times": (
        "Your {what} is too large by a factor of {n}, which is the number of replicas. Divide by "
        "the global batch instead of by the replica's own."
    ),
    "one nth": (
        "Your {what} is too small by a factor of {n}, which is the number of replicas. Since it is "
        "already divided by the global batch, do not average again."
    ),
    "batch times": (
        "Your {what} is too large by a factor of {batch}, which is the number of examples. Divide "
        "the sum by the global batch."
    ),
    "mean of means": (
        "Your {what} is wrong for unequal shards, as if it were a mean of the shards' means. Sum "
        "over all examples instead, and divide once."
    ),
    "one shard": "Your {what} comes from shard {i} alone. Add up the shards of all replicas.",
    "dropped": (
        "Your {what} leaves out {size} of {batch} examples, which are left over when the batch is "
        "cut into equal shards."
    ),
    "rate in it": (
        "Your {what} is learning_rate times what it should be. Return the gradient itself, because "
        "the rate belongs in the update."
    ),
    "other value": "Your {what} differs from what the mean loss over the whole batch gives.",
    "never called": (
        "example_losses was never called, so call it once for each device, with that device's "
        "shard."
    ),
    "wrong device": (
        "Device {device} got {got} of {batch} examples, although its share is at most {share}. Call"
        " example_losses inside `with tf.device(device)`."
    ),
    "idle device": "Device {device} had nothing to do. Distribute the batch over all {n} devices.",
    "repeated examples": (
        "The devices computed {got} examples, although the batch has {batch}. No example may be "
        "used twice, so do not pad the shards."
    ),
    "calls": (
        "example_losses was called {got} times. Call it once for each of {n} devices, with the "
        "whole of that device's shard."
    ),
    "zero": (
        "Your {what} is zero. Is the result cut off from the weights, by tf.stop_gradient or "
        ".numpy()?"
    ),
    "rounded": (
        "Your {what} is right only to a few digits. Were gradients rounded, to float16 for example,"
        " before they were added?"
    ),
    "lost examples": (
        "{got} of the {batch} examples were used. Keep the examples that are left over when the "
        "batch is cut."
    ),
    "backward": (
        "The backward pass of a shard ran on device {got} and not on device {device}. Call "
        "tape.gradient inside `with tf.device(device)`, too."
    ),
    "not updated": (
        "The weights did not change, so end with weights.assign_sub(learning_rate * gradient)."
    ),
    "uphill": "The weights went uphill, so subtract learning_rate * gradient.",
    "updated n times": (
        "The weights moved {factor:.3g} times as far as they should. Update them once, by "
        "learning_rate * gradient of the mean loss."
    ),
    "moved elsewhere": (
        "The weights are not start - learning_rate * gradient. Take every shard's gradient at the "
        "same weights, and then update once."
    ),
    "update follows": (
        "The update is right for the gradient that you return, but that gradient is wrong, so "
        "repair it first."
    ),
    "layer calls": "layer was called {got} times. Call it once for each layer of the model.",
    "layer place": (
        "{what} on device {got} and not on device {device}. The list of devices is {devices}, and "
        "the first device of this list takes the first layers, as np.array_split divides them. "
        "Make the variable and call layer inside `with tf.device(device)`."
    ),
    "layer backward": (
        "The backward pass of layer {i} ran on device {got} and not on device {device}, where the "
        "list of devices is {devices}. Each layer needs a separate tape, and its gradient must be "
        "computed inside `with tf.device(device)`."
    ),
    "layer no backward": (
        "The backward pass of layer {i} never ran, although every layer needs its gradient."
    ),
    "layers not moved": (
        "The gradients are right, as they are in the colleague's function, but every layer still "
        "runs where it ran there. This point is for gradients that remain right after a repair."
    ),
    "layer list": "Return a list with one gradient for each of {count} layers, in their order.",
    "layer order": (
        "The gradients are right, but they are in the order of the backward pass. The first layer's"
        " gradient must be the first one."
    ),
    "layer half": (
        "The gradient of layer {i} is half of what it should be, because the gradient of the sum of"
        " squares is twice the output."
    ),
    "layer gradient": (
        "The gradient of layer {i} is wrong. What comes back from the layer after it must go in as "
        "output_gradients."
    ),
    "not a pair": "Return the fitted model, and a list with the accuracy of each epoch.",
    "not mirrored": (
        "{variable} is on {got} of {n} replicas, because it was made outside strategy.scope()."
    ),
    "other model": "The model is not the one that build_model() returns.",
    "not frozen": (
        "A layer before the last one has moved. Set `trainable` of each of them to False before "
        "compile, because Keras looks at it then."
    ),
    "not trained": "The last layer has not moved, although only the layers before it are frozen.",
    "fitted elsewhere": (
        "The weights are right, but this model's optimizer has taken no step. Fit the model that "
        "was made in the scope instead of a copy of it."
    ),
    "old rate": (
        "The learning rate is still the one for a single replica. Since the global batch is {n} "
        "times as large, the rate must be, too."
    ),
    "own batch": (
        "`batch_size` in fit is the global batch. With {batch} for all {n} replicas, each gets only"
        " {batch} / {n} examples."
    ),
    "nothing scaled": (
        "This is the run of one device, with its batch and its rate. Since a replica's share is "
        "{batch}, {n} replicas take {n} times as much in a step, at {n} times the rate."
    ),
    "fitted otherwise": (
        "The weights of the last layer differ from what plain SGD over the examples in their order "
        "gives. Since fit shuffles arrays by default, use shuffle=False, and since the model gives "
        "logits, use from_logits=True."
    ),
    "accuracies": (
        "The weights are right, but these are not the accuracies of {count} epochs. Return "
        "history.history['accuracy'], with metrics=['accuracy'] in compile."
    ),
    "later losses": (
        "Your first loss is right, but the later ones are not, because of the weights that the "
        "steps leave (see below)."
    ),
    "order": (
        "Your losses differ from one device's losses, although a single batch is right. Take the "
        "examples in their order, without shuffling, global_batch at a time."
    ),
    "weights order": (
        "The weights differ from one device's weights, and so do the losses before the last step, "
        "so look at the losses first."
    ),
    "not losses": "Return a list with one number for each step.",
    "steps": (
        "You returned {count} losses for {steps} steps. Return one loss for each global batch, also"
        " for the last, smaller one."
    ),
    "last by constant": (
        "Only the last loss is wrong, because it is divided by the full global batch, although its "
        "batch has only {last} examples."
    ),
    "twice": (
        "The model saw {got} examples, although the epoch has {batch}. Call the model once for each"
        " shard and step, and go through the data once."
    ),
    "too few": (
        "The model saw {got} of {batch} examples. Take every batch of the dataset, also the last "
        "one."
    ),
    "one replica": (
        "Replica {i} saw {got} of {batch} examples, although its share is at most {share}, so let "
        "experimental_distribute_dataset cut each batch."
    ),
    "idle replica": (
        "Replica {i} saw no example, so call your function through strategy.run, on the distributed"
        " dataset."
    ),
    "weights last": (
        "The weights are right after full batches but wrong after the uneven last one. Take this "
        "batch, too, add up its losses, and divide once by the number of examples that it has."
    ),
    "weights": "The weights differ from one device's weights.",
    "weights still": (
        "The weights did not change. Apply the gradients in the function that strategy.run calls."
    ),
}

HINTS: Hints = {  # {name: (where to look, nearly the code)}
    "02-by-hand": (
        """
The gradient of the mean over the batch is a sum over examples, divided by the size of the WHOLE batch. Therefore, each
device can have its own shard, tape and gradient, while the sum and the update follow after all of them. What is outside
`with tf.device` runs on the first device.""",
        """
np.array_split(x, n) cuts an array into n pieces whose sizes differ by at most one. Cut x and y alike, and for each pair
open `with tf.device(device):`. Inside it, use a GradientTape, divide the sum of example_losses by the size of the WHOLE
batch, and call tape.gradient. After the loop, tf.add_n adds the gradients, and weights.assign_sub makes the step.""",
    ),
    "02-split": (
        """
Two things are wrong. For the forward pass, np.array_split(np.arange(6), 4) shows which layers each of four devices
takes, so compare it with the list. For the backward pass, where does an operation of tape.gradient run, and how often
does the colleague call it?""",
        """
An operation of the backward pass runs where `with tf.device` says at the call of tape.gradient, and one call for all
layers can have only one place. Therefore, each layer needs its own call on its own device, and a tape that records only
this layer. Such a call must be given what comes back from the layer behind it, and must return what the layer before it
needs. For each layer, keep what that takes, and go through the layers backwards.""",
    ),
    "02-fit": (
        """
Three things are made in the scope, namely the model, its optimizer and its metrics (which compile makes). What is
frozen must be so before compile. Then count how many examples n replicas take in one step if each keeps its share. What
does this mean for the rate?""",
        """
Under `with strategy.scope():`, take model = build_model(), set layer.trainable = False for model.layers[:-1], and call
model.compile(tf.keras.optimizers.SGD(base_rate * n), a SparseCategoricalCrossentropy(from_logits=True),
metrics=["accuracy"]). Then call model.fit(x, y, batch_size=per_replica_batch * n, epochs=epochs, shuffle=False,
verbose=0), whose history.history["accuracy"] is the list.""",
    ),
    "02-replica-loss": (
        """
A replica does not need to know how many replicas there are. What must be summed over all of them to give the mean over
the global batch? Even an empty shard has a sum.""",
        """
Sum over what the replica has, and divide by the global batch, as in tf.reduce_sum(example_losses) / global_batch.
Summed over the replicas, this is (sum of all losses) / (global batch), whereas tf.reduce_mean divides by the replica's
own number of examples.""",
    ),
    "02-epoch": (
        """
Start with the loop of the tutorial. One thing is new, because the last batch is smaller, and a replica knows only the
size of its shard. The number of examples in this step is known to all replicas together, and to the host that cuts
the batch.""",
        """
Inside the function that strategy.run calls, tf.distribute.get_replica_context().all_reduce("SUM", tf.shape(x)[0]) is
the number of examples of all replicas in this step, for tf.reduce_sum(each) / tf.cast(examples, each.dtype).
Alternatively, count on the host, min(global_batch, examples left), and pass the number in. Distribute
tf.data.Dataset.from_tensor_slices((x, y)).batch(global_batch), and reduce the losses with "SUM".""",
    ),
}

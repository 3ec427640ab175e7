"""The words of unit 02's checks: what each criterion asks, the likely mistakes, the hints."""

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "by-hand": {
        "placement": (1, "every device runs forward and backward of its own shard, and no more"),
        "gradient": (1, "the returned gradient equals one device's, to 1e-5, even and uneven batch"),
        "update": (1, "the weights took one step of gradient descent, even and uneven batch"),
    },
    "split": {
        "placement": (1, "every layer runs forward and backward on its device"),
        "gradients": (1, "after a repair, the gradients equal one device's, to 1e-5, in the order of the layers"),
    },
    "fit": {
        "fit": (2, "all variables are mirrored, only the last layer has moved, to one device's weights, and the accuracies are fit's own"),
    },
    "replica-loss": {
        "loss": (1, "the summed loss equals one device's, to 1e-5, even, uneven and empty shards"),
        "gradient": (1, "the summed gradient equals one device's, to 1e-5, even, uneven and empty shards"),
    },
    "epoch": {
        "shards": (1, "every example goes through the model once, on the replica that holds it"),
        "losses": (1, "one loss per step, equal to one device's, to 1e-5, the uneven last batch included"),
        "weights": (1, "the weights after the epoch equal one device's, to 1e-4"),
    },
}

MISTAKES = {
    "devices": "there are {found} devices and this check needs {needed}: restart the kernel and run all cells from the top",
    "not a gradient": "the result must be a tensor of the shape of the weights, {shape}",
    "not a number": "the result holds nan: the mean over an empty shard is nan, its sum is 0; sum, then divide by the global batch",
    "n times": "your {what} is {n} times too large: the number of replicas; divide by the global batch, not by the replica's own",
    "one nth": "your {what} is {n} times too small: the number of replicas; the global batch has divided already, do not average again",
    "batch times": "your {what} is {batch} times too large: the number of examples; divide the sum by the global batch",
    "mean of means": "your {what} is a mean of the shards' means: right for equal shards only; sum over all examples, divide once",
    "one shard": "your {what} is that of shard {i} alone: add up the shards of all replicas",
    "dropped": "your {what} leaves out {size} of {batch} examples, those left over when the batch is cut into equal shards",
    "rate in it": "your {what} is learning_rate times what it should be: return the gradient itself, the rate belongs in the update",
    "other value": "your {what} is not that of the mean loss over the whole batch",
    "never called": "example_losses was never called: call it once for each device, with that device's shard",
    "wrong device": "device {device} got {got} of {batch} examples, at most {share} are its share: call example_losses inside `with tf.device(device)`",
    "idle device": "device {device} had nothing to do: deal the batch out over all {n} devices",
    "repeated examples": "the devices computed {got} examples, and the batch has {batch}: no example may be used twice, so do not pad the shards",
    "calls": "example_losses was called {got} times: call it once for each of {n} devices, with the whole of that device's shard",
    "zero": "your {what} is zero: is the result cut off from the weights, by tf.stop_gradient or .numpy()?",
    "rounded": "your {what} is right to a few digits only: were gradients rounded, to float16 for example, before they were added?",
    "lost examples": "{got} of the {batch} examples were used: keep those that are left over when the batch is cut",
    "backward": "backward of a shard ran on device {got} and not on device {device}: call tape.gradient inside `with tf.device(device)` too",
    "not updated": "the weights did not change: end with weights.assign_sub(learning_rate * gradient)",
    "uphill": "the weights went uphill: subtract learning_rate * gradient",
    "updated n times": "the weights moved {factor:.3g} times as far as they should: update once, by learning_rate * gradient of the mean loss",
    "moved elsewhere": "the weights are not start - learning_rate * gradient: take every shard's gradient at the same weights, then update once",
    "update follows": "the update is right for the gradient that you return, and that gradient is wrong: mend it first",
    "layer calls": "layer was called {got} times: once for each layer of the model",
    "layer place": "{what} on device {got} and not on device {device}. The list of devices is {devices}, and the first device of this list takes the first layers, "
                   "as np.array_split divides them. Make the variable and call layer inside `with tf.device(device)`.",
    "layer backward": "Backward of layer {i} ran on device {got} and not on device {device}, where the list of devices is {devices}. Each layer needs a tape for itself, and its "
                      "gradient must be computed inside `with tf.device(device)`.",
    "layer no backward": "Backward of layer {i} never ran. Every layer needs its gradient.",
    "layers not moved": "The gradients are right, as they are in the colleague's function, but every layer still runs where it ran there. This point is for gradients that remain right after a repair.",
    "layer list": "return a list with one gradient for each of {count} layers, in their order",
    "layer order": "the gradients are right, and in the order of backward: the first layer's comes first",
    "layer half": "the gradient of layer {i} is half of what it should be: the gradient of the sum of squares is twice the output",
    "layer gradient": "the gradient of layer {i} is wrong: what comes back from the layer after it goes in as output_gradients",
    "not a pair": "return the model, fitted, and a list with the accuracy of each epoch",
    "not mirrored": "{variable} lives on {got} of {n} replicas: it was made outside strategy.scope()",
    "other model": "the model is not the one that build_model() gives",
    "not frozen": "a layer before the last one has moved: set `trainable` of each of them to False before compile, which is when Keras looks at it",
    "not trained": "the last layer has not moved: only the layers before it are frozen",
    "fitted elsewhere": "the weights are right, but this model's optimizer has taken no step: fit the model that was made in the scope, and no copy of it",
    "old rate": "the learning rate is that of one replica: the global batch is {n} times as large, and so is the rate",
    "own batch": "`batch_size` in fit is the global batch: with {batch} for all {n} replicas each gets {batch} / {n} examples",
    "nothing scaled": "this is the run of one device, batch and rate: a replica's share is {batch}, so {n} replicas take {n} times as much in a step, at {n} times the rate",
    "fitted otherwise": "the weights of the last layer are not those of plain SGD over the examples in their order: fit shuffles arrays unless told shuffle=False; and the model gives logits (from_logits=True)",
    "accuracies": "the weights are right, and these are not the accuracies of {count} epochs: history.history['accuracy'], with metrics=['accuracy'] in compile",
    "later losses": "your first loss is right, and the later ones are not: the weights that the steps leave are the reason, see below",
    "order": "your losses are not those of one device, though a single batch is right: take the examples in their order, without shuffling, global_batch at a time",
    "weights order": "the weights differ from one device's, and so do the losses before the last step: look at the losses first",
    "not losses": "return a list with one number per step",
    "steps": "{count} losses, and the number of steps is {steps}: one per global batch, the last, smaller one too",
    "last by constant": "only the last loss is wrong: it is divided by the full global batch, but only {last} examples are there",
    "twice": "the model saw {got} examples, the epoch has {batch}: call the model once per shard and step, and go through the data once",
    "too few": "the model saw {got} of {batch} examples: take every batch of the dataset, the last one too",
    "one replica": "replica {i} saw {got} of {batch} examples, its share is at most {share}: let experimental_distribute_dataset cut each batch",
    "idle replica": "replica {i} saw no example: call your function through strategy.run, on the distributed dataset",
    "weights last": "the weights are right after full batches and wrong after the uneven last one: take it too, add up its losses, and divide once by the examples that are there",
    "weights": "the weights differ from one device's",
    "weights still": "the weights did not change: apply the gradients in the function that strategy.run calls",
}

HINTS = {  # {name: (where to look, nearly the code)}
    "02-by-hand": ("""
The gradient of the mean over the batch is a sum over examples, divided by the size of the WHOLE batch. So each device can have a shard, a tape
and a gradient of its own; the sum and the update come after all of them. What stands outside `with tf.device` runs on the first device.""", """
np.array_split(x, n) cuts an array into n pieces whose sizes differ by at most one. Cut x and y alike, and for each pair open
`with tf.device(device):`. Inside it: a GradientTape, the sum of example_losses divided by the size of the WHOLE batch, and
tape.gradient. After the loop, tf.add_n adds the gradients; weights.assign_sub makes the step."""),
    "02-split": ("""
Two things are wrong. Forward: np.array_split(np.arange(6), 4) says which layers each of four devices takes; compare it with the list. Backward: where
does an operation of tape.gradient run, and how often does the colleague call it?""", """
An operation of backward runs where `with tf.device` says at the call of tape.gradient, and one call for all layers can have only one place. So each
layer needs its own call on its own device, and a tape that records this layer alone. Such a call must be given what comes back from the layer behind
it, and must return what the layer before it needs. Keep for each layer what that takes, and go through them backwards."""),
    "02-fit": ("""
Three things are made in the scope: the model, its optimizer, its metrics (compile makes those). What is frozen must be so before compile. Then
count: how many examples do n replicas take in one step if each keeps its share, and what becomes of the rate?""", """
with strategy.scope(): model = build_model(); layer.trainable = False for model.layers[:-1]; model.compile(tf.keras.optimizers.SGD(base_rate * n),
a SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]). Then model.fit(x, y, batch_size=per_replica_batch * n,
epochs=epochs, shuffle=False, verbose=0); its history.history["accuracy"] is the list."""),
    "02-replica-loss": ("""
A replica does not need to know how many replicas there are. What must be summed over all of them to give the mean over the global batch? An empty
shard has a sum.""", """
Sum over what the replica has, divide by the global batch: tf.reduce_sum(example_losses) / global_batch. Summed over the replicas this is
(sum of all losses) / (global batch). tf.reduce_mean divides by the replica's own number of examples."""),
    "02-epoch": ("""
Take the loop of the tutorial. One thing is new: the last batch is smaller, and a replica knows the size of its own shard only. Who knows how many
examples there are in this step: all replicas together, or the host that cuts the batch.""", """
Inside the function that strategy.run calls, tf.distribute.get_replica_context().all_reduce("SUM", tf.shape(x)[0]) is the number of examples of
all replicas in this step: tf.reduce_sum(each) / tf.cast(examples, each.dtype). Or count on the host: min(global_batch, examples left), and hand
it in. Distribute tf.data.Dataset.from_tensor_slices((x, y)).batch(global_batch), and reduce the losses with "SUM"."""),
}

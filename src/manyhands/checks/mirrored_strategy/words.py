"""The words of unit 02's checks: what each criterion asks, the likely mistakes, the hints."""

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "by-hand": {
        "placement": (1, "every device runs forward and backward of its own shard, and no more"),
        "gradient": (1, "the returned gradient equals one device's, to 1e-5, even and uneven batch"),
        "update": (1, "the weights took one step of gradient descent, even and uneven batch"),
    },
    "plan": {
        "plan": (1, "global batch, steps, shards of the last batch and learning rate"),
    },
    "scope": {
        "mirrored": (1, "every variable of model and optimizer is mirrored on all replicas"),
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
    "other value": "your {what} is not that of the mean loss over the whole batch",
    "never called": "example_losses was never called: call it once for each device, with that device's shard",
    "wrong device": "device {device} got {got} of {batch} examples, at most {share} are its share: call example_losses inside `with tf.device(device)`",
    "idle device": "device {device} had nothing to do: deal the batch out over all {n} devices",
    "lost examples": "{got} of the {batch} examples were used: keep those that are left over when the batch is cut",
    "backward": "backward of a shard ran on device {got} and not on device {device}: call tape.gradient inside `with tf.device(device)` too",
    "not updated": "the weights did not change: end with weights.assign_sub(learning_rate * gradient)",
    "uphill": "the weights went uphill: subtract learning_rate * gradient",
    "updated n times": "the weights moved {factor:.3g} times as far as they should: update once, by learning_rate * gradient of the mean loss",
    "moved elsewhere": "the weights are not start - learning_rate * gradient: take every shard's gradient at the same weights, then update once",
    "not a dict": "return a dict with the keys {keys}",
    "plan": "{key} is wrong: {why}",
    "not a pair": "return the model and its optimizer, in this order",
    "no variables": "the model has no variables: return what build_model() gives",
    "not mirrored": "{variable} of the {owner} lives on {got} of {n} replicas: it was made outside strategy.scope()",
    "other weights": "the model's weights are not those that build_model() gives",
    "other rate": "the optimizer must be tf.keras.optimizers.SGD with the learning rate that is given",
    "not losses": "return a list with one number per step",
    "steps": "{count} losses for {steps} steps: one per global batch, the last, smaller one too",
    "last by constant": "only the last loss is wrong: it is divided by the full global batch, but only {last} examples are there",
    "twice": "the model saw {got} examples, the epoch has {batch}: call the model once per shard and step",
    "too few": "the model saw {got} of {batch} examples: take every batch of the dataset, the last one too",
    "one replica": "replica {i} saw {got} of {batch} examples, its share is at most {share}: let experimental_distribute_dataset cut each batch",
    "idle replica": "replica {i} saw no example: call your function through strategy.run, on the distributed dataset",
    "weights last": "the weights are right after full batches and wrong after the uneven last one: take it too, and divide by the examples that are there",
    "weights": "the weights differ from one device's",
    "weights still": "the weights did not change: apply the gradients in the function that strategy.run calls",
}

PLAN_WHY = {
    "global_batch": "all replicas together take it in one step",
    "steps": "steps are counted in global batches, and a smaller last batch is a step too",
    "last_shards": "TensorFlow gives each replica ceil(examples left / replicas), until none are left",
    "learning_rate": "the linear scaling rule: k times the batch, k times the rate",
}

HINTS = {
    "02-by-hand": """
np.array_split(x, n) cuts an array into n pieces whose sizes differ by at most one. Cut x and y alike, and for each pair open
`with tf.device(device):`. Inside it: a GradientTape, the sum of example_losses divided by the size of the WHOLE batch, and
tape.gradient. After the loop, tf.add_n adds the gradients; weights.assign_sub makes the step.""",
    "02-plan": """
The last batch has examples - (steps - 1) * global_batch examples. TensorFlow rounds its share up: 22 examples on 4 replicas are
6, 6, 6 and 4; 9 are 3, 3, 3 and 0. The learning rate is given for one replica's batch.""",
    "02-scope": """
`with strategy.scope():` around two lines: the one that calls build_model and the one that makes the optimizer.""",
    "02-replica-loss": """
A replica does not need to know how many replicas there are. Sum over what it has, divide by the global batch. Summed over the
replicas this is (sum of all losses) / (global batch). tf.reduce_mean divides by the replica's own number of examples.""",
    "02-epoch": """
Take the loop of the tutorial. One thing is new: the last batch is smaller, so its size must be found. Inside the function that
strategy.run calls, tf.distribute.get_replica_context().all_reduce("SUM", tf.shape(x)[0]) is the number of examples of all
replicas in this step. Or count on the host: min(global_batch, examples left), and hand it in.""",
}

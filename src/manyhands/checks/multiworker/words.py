"""The words of unit 07's checks: what each criterion says, the likely mistakes, and the hints."""

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "config": {
        "cluster": (2, "every process is told the same addresses of all: by kind, in order, each with a port of its own"),
        "task": (1, "every process is told its own kind and number"),
    },
    "fit": {
        "steps": (1, "in each epoch as many updates as one process makes with the global batch"),
        "weights": (1, "all workers end with the weights of one process that has started as the chief did, to 1e-6"),
    },
    "loss": {
        "losses": (2, "without decay, the parts of all workers add up to the mean loss of the batch, value and gradient, for even, uneven and empty shards"),
        "decay": (1, "with decay, they add up to the objective: the penalty counts once"),
    },
    "seen": {
        "OFF": (1, "auto-shard policy OFF"),
        "DATA": (1, "auto-shard policy DATA, even and uneven batches"),
        "FILE": (1, "auto-shard policy FILE, files of different sizes"),
    },
    "dataset": {
        "once": (1, "in an epoch all workers together see each sample once, with its label"),
        "batch": (1, "a batch holds the samples of one replica"),
        "order": (1, "a mixed order; it, and who sees which sample, changes from epoch to epoch, and with the seed"),
    },
    "save": {
        "file": (1, "the chief's file is there, nobody else has written to it, and it holds what all workers know"),
        "clean": (1, "nothing else is left behind"),
    },
}

MISTAKES = {
    "unwritten": "{name} is not written yet.",
    "raised": "{name} raised {error}",
    "known": {
        "name 'strategy' is not defined": "Run the set-up cells again: they make the strategy.",
        "must be configured at program startup": "TensorFlow has run here before the strategy was made: cluster.heal(), then the set-up cells.",
        "Shapes of all inputs must match": "The penalty sums tensors of different shapes: sum each of them first.",
        "ValueError: Variable (<tf.Variable": "The model was made outside strategy.scope(), and so has variables of its own on each worker.",
        "[Op:SaveV2]": "A folder was gone while this worker wrote into it: another worker has removed one of the same name. Each worker that is not the chief needs its own folder.",
        "allow_missing_files was set to false": "The files of this worker were gone before they were complete: another worker has written or removed a folder of the same name. Each worker that is "
                                                "not the chief needs its own folder.",
        "TIME LIMIT": "If no rank waits for another one, the machine may be busy, not your answer wrong: run this check again.",
    },
    # config
    "not text": "TF_CONFIG is an environment variable: return a text, json.dumps(...) of the dict.",
    "not json": "The text is not JSON: {error}. json.dumps writes it; str(dict) has the wrong quotes.",
    "keys": 'The text needs two parts, "cluster" and "task" with "type" and "index".',
    "kinds": "The kinds in \"cluster\" are not those of the layout: {roles}.",
    "no port": "{address} has no port: each address is host:port.",
    "address twice": "{address} stands there twice. Two processes on one host cannot have one port: the second takes the next one.",
    "other port": "The ports are not right: on each host the first process takes {first}, the next one {first} + 1.",
    "localhost": "{address}: on every other host that is another process. Give the name that all can reach, also for oneself.",
    "differs": "Process {number} was told another cluster than process 0: the list is the same for all, only the task differs.",
    "order": "The addresses are not in the order of the processes: {roles}, one after the other, in the order of `hosts`.",
    "type": "Process {number} of {roles} is a {right}.",
    "counted over all": "Process {number} has index {number}: the index counts within its kind, from 0.",
    "index is text": "The index is a number, not text: TensorFlow's own reader forgives it, programs that compare it with 0 do not.",
    "index": "Process {number} of {roles} is {right}: the index counts within its kind, from 0.",
    # fit
    "not trained": "Return the model that Model.fit has trained.",
    "steps": "There are {samples} samples, and the global batch has {batch}: {right} updates in {epochs} epochs. Dataset.batch takes the *global* batch; the strategy cuts it for the workers.",
    ("fit", "alone"): "Worker {rank} has trained alone, from its own start: make the model inside strategy.scope().",
    ("fit", "batch of a worker"): "These are the weights after steps of batch / {n}. Dataset.batch takes the *global* batch; the strategy cuts it for the workers.",
    ("fit", "sharded before"): "The data was cut twice: by you, and then by fit. Give fit the dataset of the whole job.",
    ("fit", "rate scaled"): "The rate was multiplied by the number of workers. Here the global batch is what it would be in one process, and so is the rate.",
    ("fit", "no model"): "Return the model that Model.fit has trained.",
    ("fit", "unchanged"): "The weights are the chief's at the start: nothing was trained.",
    ("fit", "other"): "The weights are others. Plain SGD with this rate, the samples in their stored order (arrays are mixed by fit, a dataset is not), from_logits=True.",
    # loss
    ("loss", "no number"): "Return one number for this worker: a scalar tensor.",
    ("loss", "not finite"): "The sum is not a number: the mean of an empty shard is nan, its sum is 0.",
    ("loss", "mean of own"): "About {n} times too large: each worker took the mean over its own shard, and the parts are added up. Divide by the global batch.",
    ("loss", "mean of means"): "This is the mean of the workers' means: with shards of {sizes} samples, one of a small shard counts more. Sum, then divide by the global batch.",
    ("loss", "divided again"): "The losses are {n} times too small: divided by the global batch, and by the number of workers too. The parts are added up, not averaged.",
    ("loss", "not divided"): "The losses are not divided by the global batch.",
    ("loss", "decay on each"): "The penalty counts {n} times: each of {n} workers has added the whole of it.",
    ("loss", "decay by batch"): "The penalty was divided by the global batch, with the losses. It belongs to no sample.",
    ("loss", "no decay"): "The penalty is missing.",
    ("loss", "no half"): "The penalty is twice too large: decay / 2 times the sum of the squares.",
    ("loss", "number of workers"): "With {n} at work the penalty was divided by another number of workers: how many there are is not for you to fix, TensorFlow knows.",
    ("loss", "other"): "The parts add up to something else. Shards: {sizes}. Sum of losses / global batch, and the penalty once over all workers.",
    # seen
    "not lists": "Return one list of sample numbers for each of {n} workers.",
    "OFF": "With OFF nobody shards: each worker goes through all of the data.",
    "like cards": "Samples are not dealt one by one: each global batch is cut into {n} pieces, one for each worker.",
    "blocks": "The data is not cut into {n} blocks: each global batch is, so that a step has the samples that one process would have.",
    "as even as possible": "A batch of {batch} on {n} workers: each piece has ceil({batch} / {n}) samples, until none are left.",
    "last batch": "The last batch is cut like the others: into pieces of ceil(its size / workers), not of the share of a full batch.",
    "DATA": "Cut each global batch into pieces of ceil(size / {n}): the first for worker 0, the next for worker 1.",
    "files in blocks": "Files are dealt like cards: worker 1 of {n} takes files 1, 1 + {n}, 1 + 2 * {n}, ...",
    "FILE": "Worker 1 takes files 1, 1 + {n}, 1 + 2 * {n}, ..., whole, and likewise the others.",
    # dataset
    "not a dataset": "Return a tf.data.Dataset of pairs (x, y).",
    "not sharded": "Every worker has all samples: shard(context.num_input_pipelines, context.input_pipeline_id).",
    "sharded by replicas": "Samples {lost} are seen by nobody: there are {p} input pipelines and {r} replicas, and one pipeline feeds several replicas. Shard by "
                           "num_input_pipelines.",
    "own order": "{twice} samples are seen twice and {never} never: each worker has mixed them in an order of its own before it took its share. All need the same "
                 "seed for that.",
    "lost": "{never} samples are seen by nobody.",
    "twice": "{twice} samples are seen more than once.",
    "labels": "Samples and labels do not belong together: mix both in the same order.",
    "global batch": "The batches have {size} samples, that is the global batch. It is shared by {r} replicas: context.get_per_replica_batch_size({size}).",
    "per pipeline": "The batches have {size} samples. A worker has several replicas, and this function gives the batch of one: context.get_per_replica_batch_size.",
    "batch": "The batches have {size} samples: context.get_per_replica_batch_size({batch}) is {right}. Only the last one may be smaller.",
    "without end": "A worker gets more samples than the data has, because the dataset repeats itself. Return one epoch, without `repeat`.",
    "arrays changed": "make_dataset has changed x or y, which belong to its caller: the next epoch would start from a mixed order. Work on a copy.",
    "turned round": "The samples come in their stored order, which only begins at a different place. Mix them, so that no two samples are always neighbours.",
    "small buffer": "The samples come nearly in their stored order: those of the second half are never among a worker's first ones. The buffer of `shuffle` must hold all samples.",
    "stored order": "The samples come in their stored order: mix them.",
    "same epochs": "Epochs 0 and 1 have the same order: seed + epoch gives each epoch its own.",
    "same seeds": "Another seed gives the same order: mix with `seed` and `epoch`, so that a run with another seed sees another order.",
    "same share": "Each worker sees the same samples in all epochs: mix all samples first, then take the share.",
    # save
    "save alone": "To write a checkpoint is a call of all workers: it reads variables that every worker has a part of. If the chief writes alone, it waits for ever.",
    "nothing written": "Worker {rank} has not called checkpoint.write.",
    "same file": "Worker {rank} is not the chief and has written to the chief's path: two processes in one file. Give it a path of its own.",
    "no file": "There is no checkpoint at the chief's path.",
    "numbered": "There is a checkpoint at path-1, not at `path`: checkpoint.save adds a number, checkpoint.write does not.",
    "wrong chief": "Who is the chief is said by the argument `chief`: here it is worker {right}.",
    "other values": "The checkpoint does not hold what the workers know: {what}.",
    "left behind": "Worker {rank} has left {name} behind: what a worker that is not the chief has written is removed.",
    "left beside": "{name} lies beside the checkpoint and does not belong to it.",
}

HINTS = {
    "07-config": ("The index counts within a kind, the port within a host: go through the processes once, in their order, and keep one count for each kind and one for each host.",
                  "[kind for kind, count in roles.items() for _ in range(count)] is the kind of each process. For each, in order: its index is len(cluster[kind]) so far, its port first_port "
                  "+ how often its host came before; append f\"{host}:{port}\" to cluster[kind]. At the end json.dumps."),
    "07-fit": ("Variables that are made in the scope start with the chief's values everywhere. And which batch does Model.fit expect: that of a worker, or that of all of them?",
               "with strategy.scope(): model = make_model() and model.compile(tf.keras.optimizers.SGD(rate), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)). Then model.fit of "
               "tf.data.Dataset.from_tensor_slices((x, y)).batch(global_batch), with epochs=epochs and verbose=0."),
    "07-loss": ("What comes back from the workers is added up. So what must each divide by, that the sum is the mean over all samples? And how often is the penalty in the sum?",
                "tf.reduce_sum(example_losses) / global_batch, also for an empty shard, plus tf.nn.scale_regularization_loss(penalty), which divides by the number of replicas. penalty = decay * "
                "tf.add_n of tf.nn.l2_loss(w), which is half the sum of the squares."),
    "07-seen": ("Write down who has what in the tutorial's picture, then with a batch that does not divide: each piece has ceil(size / workers) samples, and the last ones get what is left.",
                "Let all = list(range(sum(files))). OFF: all, for each worker. DATA: for begin in range(0, len(all), global_batch), cut that batch into pieces of -(-size // workers). FILE: first "
                "which samples each file has, then files[i::workers]."),
    "07-dataset": ("Which comes first: to mix, or to take one's share? And what must the mixing depend on, and what must it not?",
                   "Dataset.from_tensor_slices((x, y)), then shuffle(len(x), seed=seed + epoch), then shard(context.num_input_pipelines, context.input_pipeline_id), then "
                   "batch(context.get_per_replica_batch_size(global_batch))."),
    "07-save": ("Everybody writes, since to write is to read, and that is a call of all. Where may a worker write, so that nothing of it is left?",
                "The chief: checkpoint.write(path). The others: with tempfile.TemporaryDirectory() as folder, checkpoint.write(os.path.join(folder, \"checkpoint\")); the folder goes at the end of "
                "the with."),
}

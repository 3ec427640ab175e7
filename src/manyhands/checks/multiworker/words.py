"""The words of unit 07's checks: what each criterion says, the likely mistakes, and the hints."""

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "config": {
        "cluster": (2, "every process is told the same addresses of all: by kind, in order, each with a port of its own"),
        "task": (1, "every process is told its own kind and number"),
    },
    "role": {
        "workers": (1, "how many workers train, and which one of them this process is"),
        "chief": (1, "whether this process is the chief"),
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
        "order": (1, "which worker sees which sample changes from epoch to epoch"),
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
    # role
    "not a dict": "Return a dict with the keys {keys}.",
    "ps counted": "Parameter servers keep variables and do not train: they are no workers.",
    "chief left out": "The chief trains too: it is one of the workers.",
    "number without the chief": "The chief is worker number 0 where there is one, so worker i is number i + 1.",
    "number": "In order, the chief and then the workers are numbered 0, 1, 2, ...; a parameter server has no number.",
    "count": "The chief and the workers train, and nobody else.",
    "every index 0": "Only one process is the chief. Index 0 says nothing by itself: parameter servers and workers have one too.",
    "worker 0 beside a chief": "There is a process of kind chief: worker 0 is then a worker like the others.",
    "no chief": "Where there is no process of kind chief, worker 0 does the chief's work.",
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
    "FILE": "Worker i takes file i and every {n}th after it, whole.",
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
    "stored order": "The samples come in their stored order: mix them.",
    "same epochs": "Epochs 0 and 1 have the same order: seed + epoch gives each epoch its own.",
    "same share": "Each worker sees the same samples in all epochs: mix all samples first, then take the share.",
    # save
    "save alone": "To write a checkpoint is a call of all workers: it reads variables that every worker has a part of. If the chief writes alone, it waits for ever.",
    "nothing written": "Worker {rank} has not called checkpoint.write.",
    "same file": "Worker {rank} is not the chief and has written to the chief's path: two processes in one file. Give it a path of its own.",
    "no file": "There is no checkpoint at the chief's path.",
    "wrong chief": "Who is the chief is said by the argument `chief`: here it is worker {right}.",
    "other values": "The checkpoint does not hold what the workers know: {what}.",
    "left behind": "Worker {rank} has left {name} behind: what a worker that is not the chief has written is removed.",
    "left beside": "{name} lies beside the checkpoint and does not belong to it.",
}

HINTS = {
    "07-config": "Go through the processes once: [kind for kind, count in roles.items() for _ in range(count)] is the kind of each. Number them within their kind, count "
                 "how often their host came before for the port, and put host:port into cluster[kind]. At the end json.dumps.",
    "07-role": "json.loads the text. The workers in order: tasks of kind chief, then those of kind worker. With a chief, worker i is number i + 1, else i.",
    "07-loss": "tf.reduce_sum(example_losses) / global_batch, also for an empty shard. tf.nn.scale_regularization_loss(penalty) divides by the number of replicas; "
               "tf.nn.l2_loss(w) is the sum of the squares, divided by 2.",
    "07-seen": "Let all = list(range(sum(files))). DATA: for begin in range(0, len(all), global_batch), cut that batch into pieces of -(-size // workers). FILE: first "
               "which samples each file has, then files[i::workers].",
    "07-dataset": "Dataset.from_tensor_slices((x, y)), then shuffle(len(x), seed=seed + epoch), then shard(context.num_input_pipelines, context.input_pipeline_id), then "
                  "batch(context.get_per_replica_batch_size(global_batch)).",
    "07-save": "All call checkpoint.write: the chief with `path`, the others with a path in a folder of their own (tempfile.mkdtemp), which they remove afterwards "
               "(shutil.rmtree).",
}

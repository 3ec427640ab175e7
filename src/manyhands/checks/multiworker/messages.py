"""The messages of unit 07's checks: what each criterion asks for, the mistakes, and the hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "config": {
        "cluster": (
            2,
            (
                "every process gets the same addresses of all processes, by kind and in order, each"
                " with its own port"
            ),
        ),
        "task": (1, "every process gets its own kind and number"),
    },
    "fit": {
        "steps": (
            1,
            "each epoch has as many updates as a single process makes with the global batch",
        ),
        "weights": (
            1,
            (
                "all workers end with the weights that a single process computes from the chief's "
                "start, to 1e-6"
            ),
        ),
    },
    "loss": {
        "losses": (
            2,
            (
                "without decay, the parts of all workers add up to the mean loss of the batch, in "
                "value and gradient, for even, uneven and empty shards"
            ),
        ),
        "decay": (1, "with decay, they add up to the objective, in which the penalty counts once"),
    },
    "seen": {
        "OFF": (1, "auto-shard policy OFF"),
        "DATA": (1, "auto-shard policy DATA, with even and uneven batches"),
        "FILE": (1, "auto-shard policy FILE, with files of different sizes"),
    },
    "dataset": {
        "once": (
            1,
            "in an epoch, all workers together see each sample exactly once, with its label",
        ),
        "batch": (1, "a batch holds the samples of one replica"),
        "order": (
            1,
            (
                "the samples are in a shuffled order that changes from epoch to epoch and with the "
                "seed, and each worker's samples change too"
            ),
        ),
    },
    "save": {
        "file": (
            1,
            (
                "the chief's file exists, no other worker has written to it, and it holds what all "
                "workers know"
            ),
        ),
        "clean": (1, "nothing else is left behind"),
    },
}

MISTAKES: Mistakes = {
    "unwritten": "{name} is not written yet.",
    "raised": "{name} raised {error}",
    "known": {
        "name 'strategy' is not defined": (
            "Run the set-up cells again, because they make the strategy."
        ),
        "must be configured at program startup": (
            "TensorFlow has run here before the strategy was made. Call "
            "cluster.heal(), and then run the set-up cells again."
        ),
        "Shapes of all inputs must match": (
            "The penalty sums tensors of different shapes, so sum each of them first."
        ),
        "ValueError: Variable (<tf.Variable": (
            "The model was made outside strategy.scope(), so it has separate "
            "variables on each worker."
        ),
        "[Op:SaveV2]": (
            "A folder disappeared while this worker wrote into it, probably because another worker "
            "has removed one of the same name. Each worker that is not the chief needs its own "
            "folder."
        ),
        "allow_missing_files was set to false": (
            "The files of this worker disappeared before they were complete, "
            "probably because another worker has written or removed a folder of "
            "the same name. Each worker that is not the chief needs its own "
            "folder."
        ),
        "TIME LIMIT": (
            "If no rank waits for another one, the machine may be busy, and your answer need not be"
            " wrong, so run this check again."
        ),
    },
    # config
    "not text": (
        "TF_CONFIG is an environment variable, so return a text, json.dumps(...) of the dict."
    ),
    "not json": (
        "The text is not JSON ({error}). Write it with json.dumps, because str(dict) has the wrong "
        "quotes."
    ),
    "keys": 'The text needs two parts, "cluster" and "task", where "task" has "type" and "index".',
    "kinds": 'The kinds in "cluster" differ from the layout, which is {roles}.',
    "no port": "{address} has no port, although each address must be host:port.",
    "address twice": (
        "{address} appears twice. Two processes on one host cannot have one port, so the second "
        "takes the next one."
    ),
    "other port": (
        "The ports are not right, since on each host the first process takes {first}, the next one "
        "{first} + 1, and so on."
    ),
    "localhost": (
        "On every other host, {address} is a different process. Give the name that all can reach, "
        "even for the process itself."
    ),
    "differs": (
        "Process {number} gets a different cluster from process 0. The list must be the same for "
        "all, and only the task differs."
    ),
    "order": (
        "The addresses are not in the order of the processes. They must follow the layout {roles}, "
        "process by process, in the order of `hosts`."
    ),
    "type": "Process {number} of {roles} is a {right}.",
    "counted over all": (
        "Process {number} has index {number}, although the index counts within its kind, from 0."
    ),
    "index is text": (
        "The index must be a number, and not text. TensorFlow's own reader accepts text, but "
        "programs that compare the index with 0 do not."
    ),
    "index": (
        "Process {number} of {roles} is {right}, because the index counts within its kind, from 0."
    ),
    # fit
    "not trained": "Return the model that Model.fit has trained.",
    "steps": (
        "There are {samples} samples, and the global batch has {batch}, which makes {right} updates"
        " in {epochs} epochs. Dataset.batch takes the *global* batch, since the strategy splits it "
        "among the workers."
    ),
    (
        "fit",
        "alone",
    ): (
        "Worker {rank} has trained alone, from its own start, so make the model inside "
        "strategy.scope()."
    ),
    (
        "fit",
        "batch of a worker",
    ): (
        "These are the weights after steps of batch / {n} samples. Dataset.batch takes the "
        "*global* batch, since the strategy splits it among the workers."
    ),
    (
        "fit",
        "sharded before",
    ): (
        "The data was split twice, first by you and then by fit. Give fit the dataset of the "
        "whole job."
    ),
    (
        "fit",
        "rate scaled",
    ): (
        "The learning rate was multiplied by the number of workers. Here, the global batch is what "
        "it would be in a single process, so the learning rate must be the same, too."
    ),
    ("fit", "no model"): "Return the model that Model.fit has trained.",
    ("fit", "unchanged"): "The weights are the chief's at the start, so nothing was trained.",
    (
        "fit",
        "other",
    ): (
        "These are not the weights of a single process. Use plain SGD with this learning rate, the "
        "samples in their stored order (fit shuffles arrays, but not a dataset), and "
        "from_logits=True."
    ),
    # loss
    ("loss", "no number"): "Return one number for this worker, that is, a scalar tensor.",
    (
        "loss",
        "not finite",
    ): (
        "The sum is not a finite number. For example, the mean of an empty shard is nan, whereas "
        "its sum is 0."
    ),
    (
        "loss",
        "mean of own",
    ): (
        "The losses are too large by a factor of about {n}. Each worker took the mean over its "
        "own shard, but the parts are added up, so divide by the global batch instead."
    ),
    (
        "loss",
        "mean of means",
    ): (
        "This is the mean of the workers' means, so with shards of {sizes} samples, a sample of "
        "a small shard counts more. Instead, sum, and then divide by the global batch."
    ),
    (
        "loss",
        "divided again",
    ): (
        "The losses are too small by a factor of {n}, because they were divided by the global "
        "batch, and by the number of workers too. The parts are added up, not averaged."
    ),
    ("loss", "not divided"): "The losses are not divided by the global batch.",
    (
        "loss",
        "decay on each",
    ): "The penalty counts {n} times, because each of {n} workers has added the whole penalty.",
    (
        "loss",
        "decay by batch",
    ): (
        "The penalty was divided by the global batch, with the losses, although it belongs to "
        "no sample."
    ),
    ("loss", "no decay"): "The penalty is missing.",
    (
        "loss",
        "no half",
    ): "The penalty is too large by a factor of 2. It is decay / 2 times the sum of the squares.",
    (
        "loss",
        "number of workers",
    ): (
        "The penalty was divided by a number of workers that is not {n}, although {n} took "
        "part. Do not fix this number, because TensorFlow knows it."
    ),
    (
        "loss",
        "other",
    ): (
        "With shards of {sizes} samples, the parts add up to a different value. Take the sum of "
        "losses / global batch, and the penalty once over all workers."
    ),
    # seen
    "not lists": "Return one list of sample numbers for each of {n} workers.",
    "OFF": "With OFF, no worker shards, so each goes through all of the data.",
    "like cards": (
        "Samples are not distributed one by one. Instead, each global batch is cut into {n} pieces,"
        " one for each worker."
    ),
    "blocks": (
        "The data is not cut into {n} blocks. Instead, each global batch is cut, so that a step has"
        " the samples that a single process would have."
    ),
    "as even as possible": (
        "If a batch of {batch} is cut for {n} workers, each piece has ceil({batch} / {n}) samples, "
        "until none are left."
    ),
    "last batch": (
        "The last batch is cut like the others, into pieces of ceil(its size / workers), instead of"
        " the share of a full batch."
    ),
    "DATA": (
        "Cut each global batch into pieces of ceil(size / {n}), the first for worker 0, the next "
        "for worker 1, and so on."
    ),
    "files in blocks": (
        "Files are distributed in turn, so worker 1 of {n} takes files 1, 1 + {n}, 1 + 2 * {n}, ..."
    ),
    "FILE": (
        "Worker 1 takes files 1, 1 + {n}, 1 + 2 * {n}, ..., whole, and the others do the same from "
        "their own number on."
    ),
    # dataset
    "not a dataset": "Return a tf.data.Dataset of pairs (x, y).",
    "not sharded": (
        "Every worker has all samples, so use shard(context.num_input_pipelines, "
        "context.input_pipeline_id)."
    ),
    "sharded by replicas": (
        "Samples {lost} are seen by no worker. Since there are {p} input pipelines and {r} "
        "replicas, one pipeline feeds several replicas. Shard by num_input_pipelines."
    ),
    "own order": (
        "{twice} samples are seen twice and {never} never, as if each worker had shuffled them in a"
        " different order before it took its shard. All need the same seed for that."
    ),
    "lost": "{never} samples are seen by no worker.",
    "twice": "{twice} samples are seen more than once.",
    "labels": "Samples and labels do not belong together, so shuffle both in the same order.",
    "global batch": (
        "The batches have {size} samples, which is the global batch. Since {r} replicas share it, "
        "use context.get_per_replica_batch_size({size})."
    ),
    "per pipeline": (
        "The batches have {size} samples. A worker has several replicas, but this function gives "
        "the batch of one replica, so use context.get_per_replica_batch_size."
    ),
    "batch": (
        "The batches have {size} samples, although context.get_per_replica_batch_size({batch}) is "
        "{right}. Only the last batch may be smaller."
    ),
    "without end": (
        "A worker gets more samples than the data has, because the dataset repeats itself. Return "
        "only one epoch, without `repeat`."
    ),
    "arrays changed": (
        "make_dataset has changed x or y, which belong to its caller. Work on a copy, because "
        "otherwise the next epoch would start from a shuffled order."
    ),
    "turned round": (
        "The samples are in their stored order, which only begins at a different place. Shuffle "
        "them, so that no two samples are always neighbours."
    ),
    "small buffer": (
        "The samples are nearly in their stored order, because the second half never appears among "
        "a worker's first ones. The buffer of `shuffle` must hold all samples."
    ),
    "stored order": "The samples are in their stored order, so shuffle them.",
    "same epochs": (
        "Epochs 0 and 1 have the same order. Use seed + epoch, so that each epoch has a different "
        "one."
    ),
    "same seeds": (
        "A different seed gives the same order. Shuffle with `seed` and `epoch`, so that a run with"
        " a different seed sees a different order."
    ),
    "same share": (
        "Each worker sees the same samples in all epochs. To avoid this, shuffle all samples first,"
        " and then take the shard."
    ),
    # save
    "save alone": (
        "All workers must write a checkpoint together, because this reads variables of which every "
        "worker has a part. If the chief writes alone, it waits forever."
    ),
    "nothing written": "Worker {rank} has not called checkpoint.write.",
    "same file": (
        "Worker {rank} is not the chief but has written to the chief's path, so two processes write"
        " to one file. Give this worker a different path."
    ),
    "no file": "There is no checkpoint at the chief's path.",
    "numbered": (
        "There is a checkpoint at path-1, and not at `path`, because checkpoint.save adds a number,"
        " whereas checkpoint.write does not."
    ),
    "wrong chief": (
        "The argument `chief` says which worker is the chief, and here it is worker {right}."
    ),
    "other values": "The checkpoint does not hold what the workers know, which is {what}.",
    "left behind": (
        "Worker {rank} has left {name} behind. Since it is not the chief, it must remove what it "
        "has written."
    ),
    "left beside": "{name} is next to the checkpoint but does not belong to it.",
}

HINTS: Hints = {
    "07-config": (
        (
            "The index counts within a kind, whereas the port counts within a host. Go through the "
            "processes once, in their order, and keep one count for each kind and one for each "
            "host."
        ),
        (
            "[kind for kind, count in roles.items() for _ in range(count)] is the kind of each "
            "process. For each process, in order, the index is len(cluster[kind]) so far, and the "
            'port is first_port + how often its host came before. Append f"{host}:{port}" to '
            "cluster[kind], and finally call json.dumps."
        ),
    ),
    "07-fit": (
        (
            "Variables that are made in the scope start with the chief's values everywhere. Which "
            "batch does Model.fit expect, the batch of one worker or the batch of all of them?"
        ),
        (
            "Inside strategy.scope(), call model = make_model() and "
            "model.compile(tf.keras.optimizers.SGD(rate), "
            "tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)). Then call model.fit "
            "on tf.data.Dataset.from_tensor_slices((x, y)).batch(global_batch), with epochs=epochs "
            "and verbose=0."
        ),
    ),
    "07-loss": (
        (
            "What the workers return is added up. By what must each of them divide, so that the sum"
            " is the mean over all samples? And how often is the penalty in the sum?"
        ),
        (
            "Return tf.reduce_sum(example_losses) / global_batch, which also works for an empty "
            "shard, plus tf.nn.scale_regularization_loss(penalty), which divides by the number of "
            "replicas. The penalty is decay * tf.add_n of tf.nn.l2_loss(w), which is half the sum "
            "of the squares."
        ),
    ),
    "07-seen": (
        (
            "Write down which worker has which samples in the tutorial's picture, and then with a "
            "batch that does not divide. Each piece has ceil(size / workers) samples, and the last "
            "pieces get what is left."
        ),
        (
            "Let all = list(range(sum(files))), which each worker gets with OFF. With DATA, cut the"
            " batch at each begin in range(0, len(all), global_batch) into pieces of -(-size // "
            "workers). With FILE, first find out which samples each file has, and then take "
            "files[i::workers]."
        ),
    ),
    "07-dataset": (
        (
            "Which is first, shuffling or taking a shard? On what must the shuffling depend, and on"
            " what must it not depend?"
        ),
        (
            "Use Dataset.from_tensor_slices((x, y)), then shuffle(len(x), seed=seed + epoch), then "
            "shard(context.num_input_pipelines, context.input_pipeline_id), and then "
            "batch(context.get_per_replica_batch_size(global_batch))."
        ),
    ),
    "07-save": (
        (
            "Every worker writes, since writing includes reading, which all workers must do "
            "together. Where may a worker write, so that nothing of it is left?"
        ),
        (
            "The chief calls checkpoint.write(path), whereas the others call "
            'checkpoint.write(os.path.join(folder, "checkpoint")) inside `with '
            "tempfile.TemporaryDirectory() as folder`. This folder is removed at the end of the "
            "with."
        ),
    ),
}

"""The words of unit 19's checks: what each criterion says, the likely mistakes, and the hints."""

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "halving-doubling": {
        "rounds": (2, "the seconds of 2 log2 p rounds, of n/2, n/4, ... n/p bytes and back, for 1 to 1024 ranks"),
    },
    "hierarchical": {
        "levels": (2, "the seconds of three phases: inside each node, between the nodes over one link a node or several, inside again"),
    },
    "step": {
        "finish": (3, "the time at which the last rank has the last sum; all-reduces run during backward, and each rank has its own clock"),
        "many": (1, "the same time for 100,000 ranks, without a Python loop over the ranks"),
    },
    "slowest": {
        "slowest": (2, "the exact mean of the largest of p times that are drawn from measured ones, to 1e-6"),
        "efficiency": (1, "images per second and rank, divided by the same number of a base with 1, 4 and 8 ranks"),
    },
    "pipeline": {
        "pipeline": (2, "the seconds of a GPipe step with unequal stages, compared with its events played one by one"),
    },
    "calibration": {
        "constants": (2, "compute_s and factor meet the first two rows of a table, and no other row changes them"),
        "rest": (2, "the images per second of every row after the second, computed from right constants"),
    },
    "bench": {
        "even": (1, "the images per second of a run without pauses, where all steps after the warm-up take the same time"),
        "uneven": (1, "the images per second of a run without pauses, where some steps after the warm-up are slow"),
    },
}

MISTAKES = {
    "no number": "This is no finite number.",
    "count": "{count} numbers are asked for, here are {found}. Constants are two; predicted are the rows after the second.",
    # collectives
    "bits": "A network of 1 Gbit/s carries 1e9 bits a second, and a byte has eight: 125e6 bytes.",
    "mega": "1 Gbit/s are 125e6 bytes a second: a thousand times as many.",
    "ring": "This is a ring, with 2 (p - 1) rounds. Halving needs log2 p, and doubling as many.",
    "tree": "In each round the whole tensor moves here, as in a tree. Halving sends n/2, then n/4, down to n/p.",
    "scatter only": "This is the first half: after it each rank has a p-th of the sum. Doubling brings the rest, in as many rounds.",
    "p-th": "Each round moves a p-th here, as in a ring. Halving sends n/2, then n/4, down to n/p.",
    "half each": "Half of the tensor moves in each round here. It is halved again in each: n/2, n/4, down to n/p.",
    "rounds other": "2 log2 p rounds: n/2, n/4, ... n/p bytes, and the same back; each costs latency_s + bytes / rate.",
    "no gather": "After the all-reduce between the nodes each rank has a part of the sum only: the all-gather inside the nodes is missing.",
    "own link": "Each rank has a link of its own here. The ranks that share a link send their parts at the same time, so their bytes add up.",
    "one link": "All parts of a node pass one link here. With several links, each of them carries only the parts of its own ranks.",
    "idle links": "A rank uses a single link, so a node never uses more links than it has ranks.",
    "cut twice": "A rank's part does not become smaller with more links; fewer ranks share a link.",
    "all ranks": "Between the nodes there are as many partners as nodes, not as ranks.",
    "flat": "This is an all-reduce over all ranks in one level.",
    "one level": "What happens inside the nodes is missing: a reduce-scatter before, an all-gather after.",
    "not cut": "Inside a node a round of a ring moves n / ranks_per_node bytes, not n.",
    "times nodes": "All nodes work at the same time: their times are not added up.",
    "levels other": "2 (g - 1) rounds of n/g bytes inside; between the nodes, one all-reduce of the bytes that pass one link of a node.",
    # a step
    "first ready": "A bucket begins here when its first gradient is ready. It has to wait for its last.",
    "in parallel": "All buckets travel at once here. There is one network: a bucket waits until the one before it has arrived.",
    "mean": "An all-reduce waits for the last rank, not for an average one: hand in the clocks as they are.",
    "one clock": "One clock stands for all ranks here. They come out of an all-reduce at different times: keep the vector.",
    "mean rank": "You took all ranks to be as slow as the average one. The slowest decides.",
    "slowest rank": "All ranks are as slow as the slowest here. With a ring that gives the same; others let some ranks go on earlier.",
    "more than full": "A bucket that holds just bucket_bytes is full: or more, not more.",
    "no overlap": "The all-reduces begin after the backward pass here. A bucket can go as soon as its own gradients are ready.",
    "one bucket": "There is one bucket here: a bucket is full as soon as it holds bucket_bytes or more.",
    "no buckets": "Each gradient travels alone here: collect them until the bucket holds bucket_bytes or more.",
    "nobody slow": "slow is not used: rank r has gradient i at slow[r] * ready_s[i].",
    "ranks added": "The times of the ranks are added up. They work at the same time: the last one counts.",
    "backward only": "This is the end of the backward pass; the sums arrive later.",
    "step other": "For each bucket: clocks = maximum(clocks of the network, slow * ready), then all_reduce(clocks, its bytes). The largest clock at the end.",
    "loop": "More than {most} lines of Python ran for 100,000 ranks: one NumPy operation on the vector of all ranks takes the place of a loop.",
    # slowest, efficiency
    "mean of times": "This is the mean of one rank. The mean of the slowest of p is larger.",
    "largest measured": "The largest measured time is what very many ranks come near; p ranks do not always meet it.",
    "each once": "A time that was measured twice counts once here: drawn from are all times.",
    "not sorted": "The times are not sorted: (i/n)^p is the chance for the i-th smallest.",
    "normal": "This takes the times to be normal. Use the measured ones as they are.",
    "in means": "This is the factor: asked for are seconds.",
    "fastest": "This is the fastest of p.",
    "slowest other": "The slowest of p is at most the i-th smallest of n times with a chance of (i/n)^p. Weight each time with the difference of two neighbours.",
    "speedup": "This is the speed-up. Efficiency is that per rank: divide by how many times as many ranks there are.",
    "base of one": "The base has more ranks than one: many / base times as many ranks, not many times.",
    "upside down": "Upside down: efficiency is below 1 where a rank of many does less than a rank of few.",
    "per cent": "A part, not per cent: 0.9, not 90.",
    "efficiency other": "Images a second and rank with many ranks, divided by the same with few.",
    # pipeline
    "no pipeline": "Here a micro-batch goes through all stages before the next begins. The stages work at the same time.",
    "all as the dearest": "All stages are as dear as the dearest here. The first micro-batch passes each at its own cost.",
    "all as the mean": "All stages cost the mean here. The dearest one holds up the others.",
    "forward only": "Backward is missing.",
    "one too many": "The first micro-batch costs the sum of the stages; after it come micro_batches - 1 others.",
    "together": "GPipe has two waves: all forwards, then all backwards. The stage that is the dearest in forward need not be it in backward.",
    "no bubble": "This is the dearest stage at work without a pause: filling and emptying the pipeline is missing.",
    "pipeline other": "A wave takes the sum of the stages, and (micro_batches - 1) times the dearest. There are two waves.",
    # tables
    "all rows": "You fitted all rows. What is then predicted has been seen before: use the first two only.",
    "ends": "These are the first and the last row: use the first two, and leave the last to be predicted.",
    "last rows": "These are the last two rows: use the first two.",
    "batch of all": "batch is that of one rank: a step has ranks * batch images.",
    "turned": "The two are exchanged: (compute_s, factor).",
    "images": "Images a second are no seconds: a step takes ranks * batch / images_per_s.",
    "cut off": "The factor is cut off: it is what two rows give, also above 1 or below 0.",
    "below 0": "The factor is cut off at 0: it is what two rows give, also below 0.",
    "constants other": "compute_s + factor * network_s(ranks) is the seconds of a step: two rows, two unknowns.",
    "seconds": "These are seconds of a step: asked for are images a second.",
    "one rank": "These are the images of one rank: there are `ranks` of them.",
    "table copied": "These are the table's own numbers. They are what a prediction is compared with.",
    "perfect": "This is perfect scaling from the first row: the network is missing.",
    "no factor": "The network's factor is missing.",
    "rounded": "Rounded: leave the numbers as they are.",
    "rest other": "For each row after the second: ranks * batch / (compute_s + factor * network_s(ranks)).",
}

_MEDIAN = "The median step leaves the slow steps out, but a run has to wait for them as well."
_EACH = "A long run does not wait for the device after each step: then the next step would be launched too late, and the device would be idle meanwhile."
_UNDER_WAY = "When the clock was started, the steps of the warm-up were still running on the device, so they are measured, too."
_LAUNCHED = "This measures how long it takes to launch the steps. The device was still working when the clock was stopped."

MISTAKES |= {
    "bench median": _MEDIAN,
    "bench median, under way": _MEDIAN,
    "bench each step": _EACH,
    "bench each step, under way": f"{_UNDER_WAY} {_EACH}",
    "bench under way": _UNDER_WAY,
    "bench launched": _LAUNCHED,
    "bench launched only": _LAUNCHED,
    "bench launched median": _LAUNCHED,
    "bench one rank": "These are the images of one rank. Return the images of all `world` ranks together.",
    "bench warm-up": "The steps of the warm-up count here. They are slower, and a long run makes them only once.",
    "bench other steps": "{made} steps were made on the bench, and {warmup} + {steps} were asked for. Make `warmup` steps, which do not count, and then measure `steps` steps.",
    "bench other": "A long run makes its steps without a pause, and all of them count: all images of the steps behind the warm-up, divided by the time from an idle device to an idle device.",
}

HINTS = {
    "19-halving-doubling": (
        "Play p = 4 on paper. How many bytes does a rank send in the first round, and in the second? How many rounds does the way back take? And how many bytes a second are 10 Gbit/s?",
        "The way back has as many rounds and bytes as the way there, and each round pays the latency. The bytes of "
        "one direction are a geometric series; compare its sum with n for p = 2 and for a large p. And what must be "
        "the time of a single rank?",
    ),
    "19-hierarchical": (
        "Three phases, one after the other. Which link does each use, how many rounds has it, and how many bytes in all leave a node in the second?",
        "Inside a node, the reduce-scatter of a ring has one round fewer than there are ranks, and the all-gather "
        "costs the same. Between the nodes, each rank has a part of n / ranks_per_node bytes: how many of these parts "
        "share one link, with few links and with more links than ranks? Test your function with a single link: then "
        "the middle phase must not depend on ranks_per_node.",
    ),
    "19-step": (
        "Keep one vector: when each rank's network is free. For each full bucket: which two times decide when rank r comes to its all-reduce? The ranks need no loop: slow is a vector.",
        "The vector begins at zero, and each all-reduce replaces it by what it returns. A rank enters an all-reduce "
        "at the later of two times, one of which is in this vector; the other one is decided by the last gradient of "
        "the bucket. NumPy can take the later of two times for all ranks at once. Which bucket is sent although it is "
        "not full?",
    ),
    "19-slowest": (
        "Sort the times. What is the chance that one drawn time is at most the i-th of n? That all p are? And for the efficiency: how much does one rank do, in each of the two rows?",
        "All p times are at most the i-th smallest one with a chance that is a power. The slowest *is* the i-th with "
        "a chance that is a difference of two such powers. What must all of these chances add up to? For the "
        "efficiency, bring both rows to one rank before you divide.",
    ),
    "19-pipeline": (
        "Draw the forwards of three micro-batches on stages of 1, 3 and 2 seconds. When does the first leave the last stage, and how much later does each of the others?",
        "After the first micro-batch, the dearest stage sets the pace of all others. Backward is a second wave, which "
        "begins when the first one is over, and its dearest stage may be a different one. Check two cases without a "
        "formula: one micro-batch on many stages, and many micro-batches on one stage.",
    ),
    "19-calibration": (
        "Turn images a second into seconds of a step first. Then two rows are two straight equations with two unknowns. Which rows may you look at?",
        "In seconds, two rows differ only by the network, so differences get rid of one unknown. The other one "
        "follows from a single row. On the way back, the same equation gives the seconds of a step, and these the "
        "images a second of *all* ranks.",
    ),
    "19-bench": (
        "Compare what is reported with the long run in each of the three rows. Which steps does the reported number contain, and which of them does it pass over?",
        "Three questions are worth asking of every benchmark. What is the device doing when the clock starts? Does measuring change what is measured? And does the statistic that is taken count each second of the run?",
    ),
}

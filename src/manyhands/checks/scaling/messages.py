"""The words of unit 19's checks: what each criterion says, the likely mistakes, and the hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "halving-doubling": {
        "rounds": (
            2,
            (
                "the seconds are right for 2 log2 p rounds, of n/2, n/4, ... n/p bytes and back, "
                "for 1 to 1024 ranks"
            ),
        ),
    },
    "hierarchical": {
        "levels": (
            2,
            (
                "the seconds of the three phases are right, inside each node, between the nodes "
                "over one or several links per node, and inside again"
            ),
        ),
    },
    "step": {
        "finish": (
            3,
            (
                "the result is the time at which the last rank has the last sum, where all-reduces "
                "run during backward and each rank has a separate clock"
            ),
        ),
        "many": (1, "the same holds for 100,000 ranks, without a Python loop over the ranks"),
    },
    "slowest": {
        "slowest": (
            2,
            (
                "the result is the exact mean of the largest of p times that are drawn from "
                "measured ones, to 1e-6"
            ),
        ),
        "efficiency": (
            1,
            (
                "the result is the images per second and rank, divided by the same number of a base"
                " with 1, 4 and 8 ranks"
            ),
        ),
    },
    "pipeline": {
        "pipeline": (
            2,
            (
                "the result is the seconds of a GPipe step with unequal stages, whose events are "
                "played one by one"
            ),
        ),
    },
    "calibration": {
        "constants": (
            2,
            "compute_s and factor fit the first two rows of a table, and no other row changes them",
        ),
        "rest": (
            2,
            (
                "the images per second of every row after the second are right, computed from right"
                " constants"
            ),
        ),
    },
    "bench": {
        "even": (
            1,
            (
                "the result is the images per second of a run without pauses, where all steps after"
                " the warm-up take the same time"
            ),
        ),
        "uneven": (
            1,
            (
                "the result is the images per second of a run without pauses, where some steps "
                "after the warm-up are slow"
            ),
        ),
    },
}

MISTAKES: Mistakes = {
    "no number": "This is not a finite number.",
    "count": (
        "{count} numbers are asked for, but here are {found}. There are two constants, and one "
        "prediction for each row after the second."
    ),
    # collectives
    "bits": (
        "A network of 1 Gbit/s carries 1e9 bits per second. Since a byte has eight bits, that is "
        "125e6 bytes per second."
    ),
    "mega": "1 Gbit/s is 125e6 bytes per second, which is a thousand times as many.",
    "ring": (
        "This is a ring, with 2 (p - 1) rounds. Instead, halving needs log2 p rounds, and doubling "
        "needs as many."
    ),
    "tree": (
        "In each round the whole tensor moves here, as in a tree. Instead, halving sends n/2, then "
        "n/4, and so on down to n/p."
    ),
    "scatter only": (
        "This is the first half, after which each rank has a p-th of the sum. Doubling brings the "
        "rest, in as many rounds."
    ),
    "p-th": (
        "Each round moves a p-th here, as in a ring. Instead, halving sends n/2, then n/4, and so "
        "on down to n/p."
    ),
    "half each": (
        "Half of the tensor moves in each round here, although it is halved again in each, to n/2, "
        "n/4, and so on down to n/p."
    ),
    "rounds other": (
        "There are 2 log2 p rounds, of n/2, n/4, ... n/p bytes and the same back, and each costs "
        "latency_s + bytes / rate."
    ),
    "no gather": (
        "After the all-reduce between the nodes, each rank has only a part of the sum, because the "
        "all-gather inside the nodes is missing."
    ),
    "own link": (
        "Each rank has a separate link here. However, ranks that share a link send their parts at "
        "the same time, so their bytes add up."
    ),
    "one link": (
        "All parts of a node pass one link here, whereas each of several links carries only the "
        "parts of the ranks that use it."
    ),
    "idle links": (
        "Since a rank uses a single link, a node never uses more links than it has ranks."
    ),
    "cut twice": (
        "A rank's part does not become smaller with more links. Instead, fewer ranks share a link."
    ),
    "all ranks": "Between the nodes there are as many partners as nodes, and not as many as ranks.",
    "flat": "This is an all-reduce over all ranks in a single level.",
    "one level": (
        "The phases inside the nodes are missing, which are a reduce-scatter before and an "
        "all-gather after."
    ),
    "not cut": "Inside a node, a round of a ring moves n / ranks_per_node bytes, and not n.",
    "times nodes": "All nodes work at the same time, so their times do not add up.",
    "levels other": (
        "Inside a node of g ranks there are 2 (g - 1) rounds of n/g bytes, and between the nodes "
        "one all-reduce of the bytes that pass one link of a node."
    ),
    # a step
    "first ready": (
        "A bucket begins here when its first gradient is ready, although it has to wait for its "
        "last."
    ),
    "in parallel": (
        "All buckets travel simultaneously here. Since there is one network, a bucket waits until "
        "the one before it has arrived."
    ),
    "mean": (
        "An all-reduce waits for the last rank and not for an average one, so pass the clocks as "
        "they are."
    ),
    "one clock": (
        "One clock represents all ranks here. Keep the vector, because ranks leave an all-reduce at"
        " different times."
    ),
    "mean rank": (
        "You assumed that all ranks are as slow as the average one, although the slowest decides."
    ),
    "slowest rank": (
        "All ranks are as slow as the slowest here. A ring gives the same result, whereas other "
        "algorithms let some ranks go on earlier."
    ),
    "more than full": "A bucket that holds exactly bucket_bytes is full, so use >= and not >.",
    "no overlap": (
        "The all-reduces begin after the backward pass here, although a bucket can be sent as soon "
        "as its own gradients are ready."
    ),
    "one bucket": (
        "There is only one bucket here, although a bucket is full as soon as it holds bucket_bytes "
        "or more."
    ),
    "no buckets": (
        "Each gradient is sent alone here. Instead, collect gradients until the bucket holds "
        "bucket_bytes or more."
    ),
    "nobody slow": "slow is not used, although rank r has gradient i at slow[r] * ready_s[i].",
    "ranks added": (
        "The times of the ranks are added up. Since the ranks work at the same time, only the last "
        "one counts."
    ),
    "backward only": "This is the end of the backward pass, but the sums arrive later.",
    "step other": (
        "For each bucket, compute clocks = maximum(clocks of the network, slow * ready), and then "
        "all_reduce(clocks, its bytes). The result is the largest clock at the end."
    ),
    "loop": (
        "More than {most} lines of Python ran for 100,000 ranks. Replace the loop by one NumPy "
        "operation on the vector of all ranks."
    ),
    # slowest, efficiency
    "mean of times": (
        "This is the mean of one rank, but the mean of the slowest of p ranks is larger."
    ),
    "largest measured": (
        "This is the largest measured time, which very many ranks come near, but p ranks do not "
        "always meet it."
    ),
    "each once": "A time that was measured twice counts once here. Draw from all times instead.",
    "not sorted": "The times are not sorted, but (i/n)^p is the probability for the i-th smallest.",
    "normal": (
        "This assumes that the times have a normal distribution. Use the measured times as they "
        "are."
    ),
    "in means": "This is the factor, although seconds are asked for.",
    "fastest": "This is the fastest of p.",
    "slowest other": (
        "The slowest of p is at most the i-th smallest of n times with a probability of (i/n)^p. "
        "Weight each time with the difference of two neighbouring probabilities."
    ),
    "speedup": (
        "This is the speed-up. Efficiency is the speed-up per rank, so divide it by the factor by "
        "which the number of ranks has grown."
    ),
    "base of one": (
        "The base has more ranks than one, so the number of ranks has grown by a factor of many / "
        "base, and not of many."
    ),
    "upside down": (
        "This is upside down, because efficiency is below 1 if a rank of many does less than a rank"
        " of few."
    ),
    "per cent": "Return a fraction instead of per cent, for example 0.9 and not 90.",
    "efficiency other": (
        "Divide the images per second and rank with many ranks by the same number with few ranks."
    ),
    # pipeline
    "no pipeline": (
        "Here a micro-batch goes through all stages before the next begins, although the stages "
        "work at the same time."
    ),
    "all as the dearest": (
        "All stages are as slow as the slowest here, although the first micro-batch passes each in "
        "its own time."
    ),
    "all as the mean": (
        "All stages take the mean time here, although the slowest one holds up the others."
    ),
    "forward only": "The backward pass is missing.",
    "one too many": (
        "The first micro-batch takes the sum of the stages, and after it only micro_batches - 1 "
        "others arrive."
    ),
    "together": (
        "GPipe has two waves, first all forwards and then all backwards. The slowest stage in "
        "forward need not be the slowest in backward."
    ),
    "no bubble": (
        "This is the slowest stage at work without a pause. The time to fill and empty the pipeline"
        " is missing."
    ),
    "pipeline other": (
        "Each of the two waves takes the sum of the stages and (micro_batches - 1) times the "
        "slowest stage."
    ),
    # tables
    "all rows": (
        "You fitted all rows, so what you then predict has been seen before. Use the first two rows"
        " only."
    ),
    "ends": (
        "These constants fit the first and the last row. Use the first two instead, and leave the "
        "last to be predicted."
    ),
    "last rows": "These constants fit the last two rows. Use the first two instead.",
    "batch of all": "batch belongs to one rank, so a step has ranks * batch images.",
    "turned": "The two are exchanged. Return (compute_s, factor).",
    "images": "Images per second are not seconds. A step takes ranks * batch / images_per_s.",
    "cut off": "The factor is cut off. Return what two rows give, even above 1 or below 0.",
    "below 0": "The factor is cut off at 0. Return what two rows give, even below 0.",
    "constants other": (
        "The seconds of a step are compute_s + factor * network_s(ranks), so two rows give the two "
        "unknowns."
    ),
    "seconds": "These are the seconds of a step, although images per second are asked for.",
    "one rank": "These are the images of one rank, although there are `ranks` of them.",
    "table copied": "These are the numbers of the table, with which a prediction is compared.",
    "perfect": (
        "This is perfect scaling from the first row, because the time of the network is missing."
    ),
    "no factor": "The network's factor is missing.",
    "rounded": "The numbers are rounded. Return them without rounding instead.",
    "rest other": (
        "For each row after the second, return ranks * batch / (compute_s + factor * "
        "network_s(ranks))."
    ),
}

_MEDIAN = "The median step leaves the slow steps out, although a run has to wait for them as well."
_EACH = (
    "A long run does not wait for the device after each step, because the next step would then be "
    "launched too late and the device would be idle meanwhile."
)
_UNDER_WAY = (
    "When the clock was started, the steps of the warm-up were still running on the device, so they"
    " are measured too."
)
_LAUNCHED = (
    "This measures how long it takes to launch the steps, because the device was still working when"
    " the clock was stopped."
)

MISTAKES |= {
    "bench median": _MEDIAN,
    "bench median, under way": _MEDIAN,
    "bench each step": _EACH,
    "bench each step, under way": f"{_UNDER_WAY} {_EACH}",
    "bench under way": _UNDER_WAY,
    "bench launched": _LAUNCHED,
    "bench launched only": _LAUNCHED,
    "bench launched median": _LAUNCHED,
    "bench one rank": (
        "These are the images of one rank. Return the images of all `world` ranks together."
    ),
    "bench warm-up": (
        "The steps of the warm-up count here, although they are slower and a long run takes them "
        "only once."
    ),
    "bench other steps": (
        "{made} steps were taken on the bench, although {warmup} + {steps} were asked for. Take "
        "`warmup` steps, which do not count, and then measure `steps` steps."
    ),
    "bench other": (
        "A long run takes its steps without a pause, and all of them count. Therefore, divide all "
        "images of the steps after the warm-up by the time from an idle device to an idle device."
    ),
}

HINTS: Hints = {
    "19-halving-doubling": (
        (
            "Play p = 4 on paper. How many bytes does a rank send in the first round, and in the "
            "second? How many rounds does the way back take? How many bytes per second are 10 "
            "Gbit/s?"
        ),
        (
            "The way back has as many rounds and bytes as the way there, and each round costs the "
            "latency. Since the bytes of one direction are a geometric series, compare its sum "
            "with n for p = 2 and for a large p. What must be the time of a single rank?"
        ),
    ),
    "19-hierarchical": (
        (
            "There are three phases, one after the other. Which link does each of them use, how "
            "many rounds does it have, and how many bytes in all leave a node in the second phase?"
        ),
        (
            "Inside a node, the reduce-scatter of a ring has one round fewer than there are ranks, "
            "and the all-gather costs the same. Between the nodes, each rank has a part of n / "
            "ranks_per_node bytes. How many of these parts share one link, with few links and with "
            "more links than ranks? Test your function with a single link, because the middle "
            "phase must then not depend on ranks_per_node."
        ),
    ),
    "19-step": (
        (
            "Keep one vector with the times at which each rank's network is free. For each full "
            "bucket, which two times decide when rank r arrives at its all-reduce? The ranks need "
            "no loop, because slow is a vector."
        ),
        (
            "The vector begins at zero, and each all-reduce replaces it by what it returns. A rank "
            "enters an all-reduce at the later of two times. One of them is in this vector, and "
            "the other one is decided by the last gradient of the bucket. NumPy can take the later "
            "of two times for all ranks at once. Which bucket is sent although it is not full?"
        ),
    ),
    "19-slowest": (
        (
            "Sort the times. What is the probability that one drawn time is at most the i-th of n, "
            "and what is the probability that all p are? For the efficiency, how much does one "
            "rank do in each of the two rows?"
        ),
        (
            "The probability that all p times are at most the i-th smallest one is a power. The "
            "probability that the slowest *is* the i-th is a difference of two such powers. What "
            "must all of these probabilities add up to? For the efficiency, convert both rows to "
            "one rank before you divide."
        ),
    ),
    "19-pipeline": (
        (
            "Draw the forwards of three micro-batches on stages of 1, 3 and 2 seconds. When does "
            "the first micro-batch leave the last stage, and how much later does each of the "
            "others leave it?"
        ),
        (
            "After the first micro-batch, the slowest stage sets the pace of all others. Backward "
            "is a second wave, which begins when the first one is over, and its slowest stage may "
            "be a different one. Check two cases without a formula, namely one micro-batch on many "
            "stages, and many micro-batches on one stage."
        ),
    ),
    "19-calibration": (
        (
            "First convert images per second into seconds of a step. Then two rows are two linear "
            "equations with two unknowns. Which rows may you look at?"
        ),
        (
            "In seconds, two rows differ only by the network, so differences eliminate one unknown."
            " The other one follows from a single row. On the way back, the same equation gives the"
            " seconds of a step, which give the images per second of *all* ranks."
        ),
    ),
    "19-bench": (
        (
            "Compare what is reported with the long run in each of the three rows. Which steps does"
            " the reported number contain, and which of them does it pass over?"
        ),
        (
            "Three questions are worth asking of every benchmark. What is the device doing when the"
            " clock starts? Does measuring change what is measured? Does the statistic that is "
            "taken count each second of the run?"
        ),
    ),
}

"""The messages of unit 05's checks: what each criterion asks for, the mistakes, and the hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "ping-pong": {
        "messages": (
            1,
            (
                "rank 0 and its peer send whole messages, one each way in every round, even in the "
                "warm-up, and no other rank sends any"
            ),
        ),
        "times": (2, "rank 0 returns half of each round trip, and leaves out the warm-up"),
    },
    "fit": {
        "latency": (
            1,
            "the latency of the protocol for large messages is right to 10 % on five hidden links",
        ),
        "bandwidth": (1, "the bandwidth of this protocol is right to 10 % on the same links"),
    },
    "interval": {
        "covers": (
            1,
            (
                "each of the two bands holds the truth in at least 7 of 16 hidden measurements "
                "(about 14 are expected)"
            ),
        ),
        "width": (
            1,
            (
                "the bands are as wide as their level asks for, that is, 0.8 to 1.3 times as wide "
                "as our own"
            ),
        ),
    },
    "chain": {
        "gather": (
            1,
            "the all-gather takes p - 1 rounds of a p-th of the tensor, for 1 to 1100 ranks",
        ),
        "chain": (
            1,
            "the time of a broadcast along a chain in pieces is right, for 1 to 1100 ranks",
        ),
        "pieces": (
            2,
            (
                "the chosen number of pieces makes the broadcast at most 3 % slower than the best "
                "number"
            ),
        ),
    },
    "ranks": {
        "ranks": (
            2,
            (
                "the answer is the largest number of ranks on which the ring is not slower than the"
                " tree"
            ),
        ),
    },
    "fusion": {
        "finish": (
            2,
            (
                "the time at which the last gradient has been summed is right, for buckets of all "
                "sizes"
            ),
        ),
        "best": (2, "the chosen size of buckets is at most 8 % slower than the best"),
    },
}

MISTAKES: Mistakes = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "should not be the same as the rank": (
            "A rank sends to itself. Rank 0 must send to `peer`, and `peer` must answer to rank 0."
        ),
    },
    "hang": (
        "Rank 0 must first send and then receive, whereas its peer must first receive and then "
        "send. Both play equally many rounds, even in the warm-up, while the other ranks send and "
        "receive nothing."
    ),
    # ping-pong
    "other calls": (
        "Only send and recv belong in a ping-pong, because every other call adds its own cost."
    ),
    "not invited": (
        "Only rank 0 and rank {peer} play here, because other traffic at the same time disturbs the"
        " measurement."
    ),
    "wrong peer": "Rank 0 plays with `peer`, which is rank {peer} here.",
    "four bytes": (
        "n_bytes counts bytes, but a float32 has four. torch.zeros(n_bytes, dtype=torch.uint8) has "
        "n_bytes bytes."
    ),
    "wrong size": "The messages do not have the size that was asked for.",
    "no warm-up": (
        "The warm-up is missing, that is, {warm_up} rounds before the {repeats} that count. The "
        "first messages of a connection are slow."
    ),
    "one way": (
        "Messages go one way only, so the sender cannot know when a message has arrived. It needs "
        "an answer."
    ),
    "rounds": (
        "There must be {warm_up} + {repeats} rounds, each with one message there and one back."
    ),
    "no list": "Rank 0 must return a list of seconds, with one for each round that counts.",
    "round trip": "These are round trips, there and back, so they are twice the time of a message.",
    "quarter": "The times are halved twice, although a round trip holds only two messages.",
    "warm-up counts": (
        "The warm-up is in the list, although its first, slow messages say nothing about the link."
    ),
    "sending only": (
        "The clock was read before the answer had arrived. Read it later, since `send` returns when"
        " the message has been handed over, and not when it has arrived."
    ),
    "mean": (
        "This is the mean, once for each round. Return each round's own time instead, so that a "
        "median can be taken later."
    ),
    "running": "These times add up, so read the clock again at the start of each round.",
    "stands still": (
        "All times are 0, so read the clock before and after the messages, and use the `clock` that"
        " is passed in."
    ),
    "how many": (
        "The list must have one time for each round that counts, which makes {repeats} here."
    ),
    "other times": (
        "These are not the times of this clock. In each round, read it, send, receive, read it "
        "again, and take half of the difference."
    ),
    # fit
    "no pair": "Return two numbers, (latency_s, bytes_per_s).",
    "exchanged": "Latency and bandwidth are exchanged, so return (latency_s, bytes_per_s).",
    "beta": (
        "These are seconds per byte, beta. Return the reciprocal instead, which is bytes per "
        "second."
    ),
    "disturbed": (
        "This is wrong, perhaps because a few disturbed times drag the mean along. Use a value that"
        " they do not move, such as the median of each size."
    ),
    "largest decide": (
        "The largest errors decide, because without weights a deviation of 1 % at {largest} MB "
        "counts more than all small messages together, and the latency is what is left over. Fit "
        "relative errors instead, that is, divide each equation by its time."
    ),
    "one line": (
        "This is the line through all sizes, which mixes two protocols. Find the size at which the "
        "protocol changes, and fit only this size and the larger ones."
    ),
    "sizes of both": (
        "This line also goes through sizes that the protocol for small messages has sent. Which "
        "size must be the first of the line, so that a line below it and a line from it on fit "
        "best together?"
    ),
    "too few sizes": (
        "This line leaves out sizes that the protocol for large messages has sent, and the largest "
        "sizes alone show little of the latency. Fit all sizes from the change on, and search for "
        "the change with the relative errors of both lines."
    ),
    "small protocol": (
        "These are the numbers of the protocol for small messages. Return the line of the larger "
        "sizes, because a bucket of gradients is a large message."
    ),
    "smallest message": (
        "This is the time of the smallest message of the protocol. However, {smallest} bytes are "
        "not nothing on this link, so fit the line, and take what is left at 0 bytes."
    ),
    "latency left in": (
        "This is the size of the largest message divided by its time. Since the latency is a part "
        "of that time, subtract it, or fit the line."
    ),
    "other latency": (
        "The latency is wrong. What does the line say at 0 bytes if the median of each size counts "
        "equally? Perhaps it goes through too few sizes, or also through some of the other "
        "protocol."
    ),
    "other bandwidth": (
        "The bandwidth is wrong, because it is 1 / the slope of the line, in bytes per second. "
        "Perhaps the line goes through too few sizes, or also through some of the other protocol."
    ),
    # interval
    "no two pairs": (
        "Return two pairs, ((lowest, highest) latency_s, (lowest, highest) bytes_per_s)."
    ),
    "turned": (
        "The pairs are transposed, so return (lowest, highest) of the latency and (lowest, highest)"
        " of the bandwidth."
    ),
    "bands exchanged": (
        "Latency and bandwidth are exchanged, although the band of the latency must be first."
    ),
    "order": "The {what}'s band is upside down, since it must be (lowest, highest).",
    "misses": (
        "The band of the {what} misses the truth too often, because it is too narrow or in the "
        "wrong place."
    ),
    "single times": (
        "The band of the {what} is far too wide, as if it told how much *single* times scatter. It "
        "should tell how much the fit would, so resample as many times of each size as there are, "
        "and fit their medians."
    ),
    "same width": (
        "The band of the {what} is too wide for its level. It must hold the middle {level:.0%}, so "
        "that {rest} are left out at each end. For level {wide:g} it was as wide as it should be. "
        "Does the level that is passed in decide?"
    ),
    "too wide": (
        "The band of the {what} is too wide for its level. It must hold the middle {level:.0%}, so "
        "that {rest} are left out at each end."
    ),
    "one side": (
        "The band of the {what} is too narrow. Level {level:g} leaves {whole} out, at both ends "
        "together, so take the quantiles {rest} and {upper} of fits that each have as many times "
        "of a size as that size has, and no more."
    ),
    "too narrow": (
        "The band of the {what} is too narrow for its level. Did you resample the repeated times of"
        " each size, with replacement, as many as there are?"
    ),
    # the chain in pieces
    "multiplied": (
        "For the {what} with p = {p}, bytes_per_s is a speed, so divide by it, as in n_bytes / "
        "bytes_per_s."
    ),
    "latency once": (
        "For the {what} with p = {p}, the latency counts only once, although every round begins "
        "with its own latency."
    ),
    "other cost": (
        "For the {what} of {n_bytes} bytes with p = {p}{cut}, the time is wrong. How many rounds "
        "does it take, and how many bytes are in each?"
    ),
    "gather twice": (
        "For the all-gather with p = {p}, these are the rounds of an all-reduce, but an all-gather "
        "is its second half only."
    ),
    "gather p rounds": (
        "For the all-gather with p = {p}, a part needs only p - 1 hops to reach all other ranks. (A"
        " single rank needs no hop.)"
    ),
    "gather not cut": (
        "For the all-gather with p = {p}, n_bytes is the size of the gathered tensor, and in each "
        "round a p-th of it moves."
    ),
    "chain in turn": (
        "For the chain with p = {p}{cut}, each rank waits here for the whole tensor before it "
        "passes anything on. Instead, a rank passes a part on while it receives the next one."
    ),
    "chain not cut": (
        "For the chain with p = {p}{cut}, in each round one part moves, and not the whole tensor."
    ),
    "chain one more": (
        "For the chain with p = {p}{cut}, this is one round too many. The first part reaches the "
        "last rank at the end of round p - 1, and each further part takes one more round."
    ),
    "chain one less": (
        "For the chain with p = {p}{cut}, this is one round too few. The first part reaches the "
        "last rank after p - 1 rounds, and each *further* part takes one more."
    ),
    "pieces whole": "For p = {p}, the number of pieces must be a whole number, at least 1.",
    "pieces uncut": (
        "For p = {p}, only one rank sends at a time with a single piece, so this is {more} % slower"
        " than the best number of pieces."
    ),
    "pieces by alpha B": (
        "For p = {p}, this makes each piece as large as alpha B, whatever the length of the chain. "
        "That is {more} % slower than the best number, because more ranks need smaller pieces."
    ),
    "pieces other": (
        "For p = {p} and {n_bytes} bytes, {got} pieces are {more} % slower than the best number. "
        "More pieces cost latencies, whereas fewer pieces let the ranks wait, so try several "
        "numbers with chain_s."
    ),
    # how many ranks
    "ranks no number": "Return a whole number of ranks, from 1 to {limit}.",
    "ranks first": (
        "With limit {limit}, you stop at the first number of ranks on which the ring is slower. "
        "However, just above a power of two the tree gets two more rounds, so the ring can be "
        "faster again."
    ),
    "ranks log2": (
        "With limit {limit}, the tree has twice log2 p rounds, where log2 p is *rounded up*, that "
        "is, 2 * (p - 1).bit_length()."
    ),
    "ranks powers": (
        "With limit {limit}, you look at powers of two only, although the number of ranks may be "
        "any whole number."
    ),
    "ranks over": "The number of ranks must not be larger than the limit, {limit}.",
    "ranks slower": "With limit {limit}, the ring is slower than the tree on {got} ranks.",
    "ranks other": (
        "With limit {limit}, there is a larger number of ranks on which the ring is not slower."
    ),
    # fusion
    "no number": "Return a number of bytes.",
    "after the backward": (
        "Nothing is sent here before the whole backward pass has ended, although a bucket can leave"
        " as soon as its own gradients are ready."
    ),
    "network only": (
        "This is the time of the messages alone, but they cannot leave before their gradients are "
        "ready."
    ),
    "last bucket only": (
        "Only the last bucket is waited for. The buckets before it may still be under way, because "
        "the network carries one at a time."
    ),
    "first is ready": (
        "A bucket leaves when its *last* gradient is ready, and not when its first one is."
    ),
    "no queue": (
        "The buckets overtake each other, although each must wait until the network is free."
    ),
    "over the limit": (
        "A bucket that holds exactly bucket_bytes is full, because the rule is *or more*, >=."
    ),
    "under the limit": (
        "A bucket is full when it holds bucket_bytes *or more*, so the tensor that fills it up "
        "still goes with it."
    ),
    "rest forgotten": (
        "The last bucket was not sent. Even if it is not full, it must be sent all the same."
    ),
    "other finish": (
        "This is not the time that {count} buckets take (limit {limit} bytes, and the first bucket "
        "holds {bytes}). For each of them, in order, wait for its gradients, wait for the network, "
        "and send it."
    ),
    "one bucket": (
        "With one bucket for all, there are few messages, but nothing is sent before the last "
        "gradient is ready. This is {more} % slower than the best."
    ),
    "the time": (
        "This is less than one byte, so is it the time? Return the size of the buckets with which "
        "that time is reached."
    ),
    "no fusion": (
        "With a message for each gradient, every gradient pays its latencies. This is {more} % "
        "slower than the best."
    ),
    "other buckets": (
        "This is {more} % slower than the best. The best size depends on the network and on the "
        "gradients, so try several, and take the best."
    ),
}

HINTS: Hints = {
    "05-ping-pong": (
        (
            "One round is two messages, since rank 0 sends and then receives, while `peer` receives"
            " and then sends. Where on rank 0 must the clock be read, so that both messages are "
            "between the two readings?"
        ),
        (
            "In each of warm_up + repeats rounds, rank 0 calls start = clock(), dist.send(x, peer),"
            " dist.recv(x, peer), and takes (clock() - start) / 2. As often, `peer` calls "
            "dist.recv(x, 0) and dist.send(x, 0), while all other ranks do nothing. Use x = "
            "torch.zeros(n_bytes, dtype=torch.uint8), and finally leave out the first warm_up "
            "times."
        ),
    ),
    "05-fit": (
        (
            "First choose one number for each size that a few disturbed times do not move. Then "
            "suppose that you knew the first size of the protocol for large messages. You would "
            "fit one line to the smaller sizes and one to the rest, with weights 1/t as in the "
            "tutorial. How can you tell from the errors of both lines whether you have supposed "
            "the right size? An error of 1 % should count the same for a small message as for a "
            "large one."
        ),
        (
            "Let n be the sizes and t the median of each, both as arrays. Write line(n, t), which "
            "calls np.polyfit(n, t, 1, w=1 / t) for beta and alpha, and also returns the sum of "
            "((alpha + n beta) / t - 1)**2. For each cut from 4 to len(n) - 4, add the sums of "
            "line(n[:cut], t[:cut]) and line(n[cut:], t[cut:]). Take the cut with the smallest "
            "total, and return alpha and 1 / beta of its second line."
        ),
    ),
    "05-interval": (
        (
            "Do many times what you would otherwise do once. Draw times for each size, with "
            "replacement, as many as there are, and give them to `fit`. You get many latencies and "
            "many bandwidths. How large a part of them is left out at each end?"
        ),
        (
            "Repeat 200 times: for each size, draw.choice(times, len(times)), and fit what you have"
            " drawn. Then take np.quantile(latencies, [(1 - level) / 2, (1 + level) / 2]) over the "
            "200 latencies, and do the same for the bandwidths. Return one pair (low, high) for "
            "each."
        ),
    ),
    "05-chain": (
        (
            "An all-reduce along a ring is a reduce-scatter and an all-gather, which have the same "
            "number of rounds. For the chain, count in which round the first part reaches the last "
            "rank, and how many rounds later the last part does."
        ),
        (
            "The time of the chain is the number of rounds multiplied by the time of one part. Both"
            " depend on `pieces`, but one grows while the other shrinks. Search over whole numbers "
            "with your own chain_s (but not over all of them, because the best number can be "
            "large), or find where the derivative over `pieces` is 0, and look at the whole "
            "numbers around it."
        ),
    ),
    "05-ranks": (
        (
            "On 4 ranks the tree has 4 rounds and on 5 ranks it has 6, whereas the ring gains only "
            "two small rounds. What, then, is the answer on 5 ranks if the ring was a little "
            "slower on 4?"
        ),
        (
            "The set of numbers on which the ring is not slower may have gaps, so a search by "
            "halving, or one that stops at the first gap, can miss its end. `limit` is small "
            "enough to look at every number."
        ),
    ),
    "05-fusion": (
        (
            "Go through the gradients once, in order, and keep track of when the network is free "
            "again and of how many bytes the bucket holds. When is a bucket sent, and at which of "
            "two moments does the network begin with it? For the best size, try many with your own "
            "finish_s."
        ),
        (
            "Add the bytes of each gradient. If the bucket then holds bucket_bytes or more, or if "
            "this is the last gradient, set free_s = max(free_s, ready_s of this gradient) + "
            "all_reduce_s(bytes), and start a new bucket. For the best size, compute finish_s for "
            "total / k with k = 1, 2, ..., and take the smallest."
        ),
    ),
}

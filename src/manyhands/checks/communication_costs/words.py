"""The words of unit 05's checks: what each criterion says, the likely mistakes, and the hints."""

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "ping-pong": {
        "messages": (1, "rank 0 and its peer send each other whole messages, once each way a round, the warm-up too; no other rank does"),
        "times": (2, "rank 0 returns half of each round trip, and leaves the warm-up out"),
    },
    "fit": {
        "latency": (1, "the latency of five hidden links, to 10 %"),
        "bandwidth": (1, "their bytes per second, to 10 %"),
    },
    "interval": {
        "covers": (1, "the bands hold the truth: each in at least 7 of 16 hidden measurements (about 14 are expected)"),
        "width": (1, "and are as wide as their level asks for: 0.8 to 1.3 times our own"),
    },
    "chain": {
        "gather": (1, "p - 1 rounds of a p-th of the tensor, for 1 to 1100 ranks"),
        "chain": (1, "a broadcast along a chain in pieces, for 1 to 1100 ranks"),
        "pieces": (2, "the chosen number of pieces makes the broadcast at most 3 % slower than the best number"),
    },
    "ranks": {
        "ranks": (2, "the largest number of ranks on which the ring is not slower than the tree"),
    },
    "fusion": {
        "finish": (2, "when the last gradient has been summed, for buckets of all sizes"),
        "best": (2, "the chosen size of buckets is at most 8 % slower than the best"),
    },
}

MISTAKES = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "should not be the same as the rank": "A rank sends to itself: rank 0 sends to `peer`, and `peer` answers to rank 0.",
    },
    "hang": "Rank 0 sends first and then receives; its peer receives first and then sends. Equally many rounds on both sides, the warm-up too. "
            "The other ranks send and receive nothing.",
    # ping-pong
    "other calls": "Only send and recv belong into a ping-pong: each other call has a price of its own.",
    "not invited": "Only rank 0 and rank {peer} play here: other traffic at the same time disturbs the measurement.",
    "wrong peer": "Rank 0 plays with `peer`, which is {peer} here.",
    "four bytes": "n_bytes counts bytes, and a float32 has four: torch.zeros(n_bytes, dtype=torch.uint8) has as many.",
    "wrong size": "The messages are not of the size that was asked for.",
    "no warm-up": "The warm-up is missing: {warm_up} rounds before the {repeats} that count. The first messages of a connection are slow.",
    "one way": "Messages go one way only. The sender cannot know when a message has arrived, unless an answer comes back.",
    "rounds": "{warm_up} + {repeats} rounds were asked for, each with one message there and one back.",
    "no list": "Rank 0 returns a list of seconds, one for each round that counts.",
    "round trip": "These are round trips, there and back: twice the time of a message.",
    "quarter": "Half of a half: one round trip holds two messages.",
    "warm-up counts": "The warm-up is in the list: its first, slow messages say nothing about the link.",
    "sending only": "The clock was read before the answer had come: `send` returns when the message has been handed over, not when it has arrived.",
    "mean": "This is the mean, once for each round. Return each round's own time: who has all of them can take the median.",
    "running": "These times add up: read the clock anew at the start of each round.",
    "stands still": "All times are 0: read the clock before and after the messages, and use the `clock` that is handed in.",
    "how many": "The list must have one time for each round that counts, {repeats} here.",
    "other times": "These are not the times of this clock. Per round: read it, send, receive, read it again; half of the difference.",
    # fit
    "no pair": "Return two numbers: (latency_s, bytes_per_s).",
    "exchanged": "Latency and bandwidth are exchanged: return (latency_s, bytes_per_s).",
    "beta": "These are seconds per byte, beta. Asked for is its reciprocal: bytes per second.",
    "disturbed": "Too slow: a few disturbed times drag the mean along. Use what they do not move, such as the median of each size.",
    "largest decide": "Largest errors first: without weights a deviation of 1 % at {largest} MB counts more than all small messages together, and the latency is what is left "
                      "over. Fit relative errors: divide each equation by its time.",
    "smallest message": "This is the time of the smallest message. But {smallest} bytes are not nothing on this link: fit the line, and take what is left at 0 bytes.",
    "latency left in": "This is size divided by time of the largest message. The latency is a part of that time: take it off, or fit the line.",
    "other latency": "The latency is off. What does the line say at 0 bytes, if each size's median counts alike?",
    "other bandwidth": "The bandwidth is off: it is 1 / the slope of the line, in bytes per second.",
    # interval
    "no two pairs": "Return two pairs: ((lowest, highest) latency_s, (lowest, highest) bytes_per_s).",
    "turned": "Turned over: one pair for the latency and one for the bandwidth, not one for the low end and one for the high end.",
    "bands exchanged": "Latency and bandwidth are exchanged: the band of the latency comes first.",
    "order": "The {what}'s band is upside down: (lowest, highest).",
    "misses": "The band of the {what} misses the truth too often: it is too narrow, or lies elsewhere.",
    "single times": "The band of the {what} is far too wide. It tells how much *single* times scatter. Asked for is how much the fit would: resample as many times of each size "
                    "as there are, and fit their medians.",
    "same width": "The band of the {what} is too wide for its level: {level:.0%} in the middle, so {rest} are left out at each end. For level {wide:g} it was as wide as it should be: does the level "
                  "that is handed in decide?",
    "too wide": "The band of the {what} is too wide for its level: {level:.0%} in the middle, so {rest} are left out at each end.",
    "one side": "The band of the {what} is too narrow. Level {level:g} leaves {whole} out, at both ends together: the quantiles {rest} and {upper}, of fits that each have as many times of a size as that "
                "size has, no more.",
    "too narrow": "The band of the {what} is too narrow for its level. Did you resample the repeated times of each size, with replacement, as many as there are?",
    # the chain in pieces
    "multiplied": "{what}, p = {p}: bytes_per_s is a speed, so divide by it: n_bytes / bytes_per_s.",
    "latency once": "{what}, p = {p}: every round begins with its own latency.",
    "other cost": "{what}, p = {p}, {n_bytes} bytes{cut}: how many rounds are there, and how many bytes are in each?",
    "gather twice": "gather, p = {p}: these are the rounds of an all-reduce. An all-gather is its second half only.",
    "gather p rounds": "gather, p = {p}: a part needs p - 1 hops to reach all other ranks. (One rank needs none.)",
    "gather not cut": "gather, p = {p}: n_bytes is the size of the gathered tensor, and in each round a p-th of it moves.",
    "chain in turn": "chain, p = {p}{cut}: here each rank waits for the whole tensor before it passes anything on. A rank passes a part on while it receives the next one.",
    "chain not cut": "chain, p = {p}{cut}: in each round one part moves, not the whole tensor.",
    "chain one more": "chain, p = {p}{cut}: this is one round too many. In the round in which the first part reaches the last rank, p - 1 rounds are over, and each further part takes one more.",
    "chain one less": "chain, p = {p}{cut}: this is one round too few. The first part reaches the last rank after p - 1 rounds, and each *further* part takes one more.",
    "pieces whole": "p = {p}: the number of pieces is a whole number, at least 1.",
    "pieces uncut": "p = {p}: with a single piece, only one rank sends at a time. {more} % slower than the best number of pieces.",
    "pieces by alpha B": "p = {p}: this makes each piece as large as alpha B, whatever the length of the chain. {more} % slower than the best number: more ranks need smaller pieces.",
    "pieces other": "p = {p}, {n_bytes} bytes: {got} pieces are {more} % slower than the best number. More pieces cost latencies, fewer pieces let the ranks wait. Try several numbers with chain_s.",
    # how many ranks
    "ranks no number": "Return a whole number of ranks, from 1 to {limit}.",
    "ranks first": "Limit {limit}: you stop at the first number of ranks on which the ring is slower. Just above a power of two the tree gets two more rounds, and the ring can be the faster one again.",
    "ranks log2": "Limit {limit}: the tree has log2 p rounds, *rounded up*: (p - 1).bit_length().",
    "ranks powers": "Limit {limit}: these are powers of two only. The number of ranks may be any whole number.",
    "ranks over": "The number of ranks must not be larger than the limit, {limit}.",
    "ranks slower": "Limit {limit}: on {got} ranks the ring is slower than the tree.",
    "ranks other": "Limit {limit}: the ring is not slower on more ranks than that, too.",
    # fusion
    "no number": "Return a number of bytes.",
    "after the backward": "Nothing is sent here before the whole backward pass has ended. A bucket can leave as soon as its own gradients are ready.",
    "network only": "The time of the messages alone. They cannot leave before their gradients are ready.",
    "last bucket only": "Only the last bucket is waited for. The buckets before it may still be under way: one message at a time.",
    "first is ready": "A bucket leaves when its *last* gradient is ready, not its first.",
    "no queue": "The buckets overtake each other: each must wait until the network is free.",
    "over the limit": "A bucket that holds exactly bucket_bytes is full: *or more*, >=.",
    "under the limit": "A bucket is full when it holds bucket_bytes *or more*: the tensor that fills it up still goes with it.",
    "rest forgotten": "The last bucket is never full. It must be sent all the same.",
    "other finish": "Not the time that {count} buckets take (limit {limit} bytes; the first holds {bytes}). Go through them in order: wait for the gradients, wait for the network, send.",
    "one bucket": "One bucket for all: few messages, but nothing is sent before the last gradient is ready. {more} % slower than the best.",
    "the time": "This is less than one byte. Is it the time? Asked for is the size of the buckets with which that time is reached.",
    "no fusion": "A message for each gradient: every one pays its latencies. {more} % slower than the best.",
    "other buckets": "{more} % slower than the best. The best size depends on the network and on the gradients: try several, and take the best.",
}

HINTS = {
    "05-ping-pong": (
        "One round is two messages: rank 0 sends and then receives, `peer` receives and then sends. Where on rank 0 must the clock be read, so that both messages lie between the two readings?",
        "Rank 0, in each of warm_up + repeats rounds: start = clock(); dist.send(x, peer); dist.recv(x, peer); then (clock() - start) / 2. The rank `peer`: dist.recv(x, 0); dist.send(x, 0), as "
        "often. All other ranks: nothing. x = torch.zeros(n_bytes, dtype=torch.uint8). At the end, leave the first warm_up times out.",
    ),
    "05-fit": (
        "Two choices. For each size, one number that a few disturbed times do not move. Then a straight line, but not the one with the smallest errors in seconds: an error of 1 % should count the "
        "same for a small message as for a large one. What must each equation be divided by?",
        "t = the median of each size. You look for alpha and beta with alpha + n beta = t, as well as can be. Divide each equation by its t: alpha / t + beta n / t = 1. "
        "np.linalg.lstsq(np.stack([1 / t, n / t], axis=1), np.ones(len(t)), rcond=None)[0] gives both. np.polyfit(n, t, 1, w=1 / t) does the same, beta first. Asked for is 1 / beta.",
    ),
    "05-interval": (
        "Do many times what you would do once: draw times for each size, with replacement, as many as there are, and give them to `fit`. You get many latencies and many bandwidths. How large a part "
        "of them is left out at each end?",
        "200 times: for each size, draw.choice(times, len(times)); fit what came. Then, over the 200 latencies, np.quantile(latencies, [(1 - level) / 2, (1 + level) / 2]); the same for the "
        "bandwidths. Return one pair (low, high) for each.",
    ),
    "05-chain": (
        "An all-reduce along a ring is a reduce-scatter and an all-gather, with equally many rounds. For the chain, count in which round the first part reaches the last rank, and how many rounds later the last part does.",
        "The time of the chain is a number of rounds times what one part takes, and both depend on `pieces`: one grows, the other shrinks. Search over whole numbers with your own chain_s (the best number can be large, so do not try "
        "every one of them), or find where the derivative over `pieces` is 0, and look at the whole numbers around it.",
    ),
    "05-ranks": (
        "On 4 ranks the tree has 4 rounds and on 5 ranks it has 6, while the ring gains only two small rounds. So what becomes of the question at 5 ranks, if the ring was a little slower on 4?",
        "The set of numbers on which the ring is not slower may have gaps, so a search by halving, or one that stops at the first gap, can miss its end. `limit` is small enough to look at every number.",
    ),
    "05-fusion": (
        "Go through the gradients once, in order, and keep two numbers: when the network is free again, and how many bytes the bucket holds. When is a bucket sent, and at which of two moments does "
        "the network begin with it? For the best size, try many with your own finish_s.",
        "For each gradient: add its bytes; if the bucket holds bucket_bytes or more, or this is the last gradient, then free_s = max(free_s, ready_s of this gradient) + all_reduce_s(bytes), and start "
        "a new bucket. For the best size: finish_s for total / k, k = 1, 2, ..., and take the smallest.",
    ),
}

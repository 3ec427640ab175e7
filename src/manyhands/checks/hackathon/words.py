"""What the checks of unit 20 say: criteria with their points, likely mistakes, hints."""

CRITERIA = {  # {check: {criterion: (points, text)}}
    "mended": {
        "together": (1, "all ranks use all of their batches, and the ranks have equal weights at the end"),
        "equal": (2, "the weights at the end are those of one process that takes the batches of all four ranks in each step"),
        "lean": (1, "each step makes one all-reduce, and all four gradients are in its tensor"),
    },
    "price": {
        "message": (1, "the seconds of one message"),
        "entry": (2, "the seconds of an entry that all-reduces some tensors after each k-th gradient"),
        "gathered": (1, "the seconds of an entry that all-gathers a message after each gradient"),
    },
    "pack": {
        "largest": (1, "unpack returns the numbers that are furthest from 0 at their old places, and 0 at all others"),
        "kept": (1, "afterwards, `kept` holds the numbers before it minus what unpack returns, so the error of rounding stays in it"),
        "small": (1, "the message is one tensor with at most 4 bytes for each number that is sent (and 8 more)"),
        "places": (1, "numbers at places beyond 32,767 are returned at their places, too"),
    },
    "sparse": {
        "weights": (1, "after a step, the weights of three ranks are those of one process that adds up all numbers that were sent"),
        "all": (1, "if every number is sent, a step is one with the averaged gradient; what was not sent stays in `kept`"),
    },
    "entry": {
        "right": (2, "the accuracy reaches the target in all three runs, on new data and on links that you have not seen"),
        "faster": (1, "first rung: the median time of the three runs is below the baseline's"),
        "half": (1, "second rung: it is at most half of the baseline's time"),
        "fifth": (2, "third rung: it is at most a fifth of the baseline's time"),
        "tenth": (2, "fourth rung: it is at most a tenth of the baseline's time"),
    },
}

MISTAKES = {
    "no cell": "An entry is the cell in which its function is written: run that cell again, without a line that begins with %%, and hand in the function itself.",
    "one cell": "An entry is one cell, as it is one file in the hackathon: all that it uses must be imported or defined there.",
    # mended
    "batches": "Each rank gets {wanted} batches, and {got} gradients were asked for. Take one for each batch, and all.",
    "four tensors": "{got} messages of a rank in {steps} steps: an all-reduce is 6. Put the gradients into one tensor (parameters_to_vector), "
                    "all_reduce that, and put them back.",
    "more bytes": "{got} bytes of a rank in {steps} steps; one all-reduce in each sends {most} at most. An all-gather sends every rank the whole tensors of all the others: all_reduce one.",
    "sum": "the gradients are summed, not averaged",
    "add up": "the gradients are never set back, and add up from step to step",
    "clip first": "each rank clips its own gradient before the average",
    "as if": "These are the weights of a training in which {what}.",
    "other": "These are not the weights of one process. {apart:.1%} of the way from the start is missed. Rate 0.1, momentum 0.9, "
             "and the averaged gradient clipped to a length of 2.",
    "own": "these are each rank's own gradients",
    # price
    "bits": "The rate is in Mbit/s: 10 Mbit/s are 1.25 million bytes a second.",
    "delay": "The delay is in ms.",
    "no head": "Each message has a head of 64 bytes.",
    "head once": "Each of the messages has a head and a delay, not only the first.",
    "no delay": "A message is also delay_ms under way.",
    "each step": "It sends after each `every`-th gradient, not after each one.",
    "no gradients": "The gradients take time, too.",
    "not cut": "A ring cuts a tensor into as many parts as there are ranks: each message carries one part.",
    "half the ring": "A ring all-reduce is a reduce-scatter and an all-gather: 2 (p - 1) messages one after the other.",
    "one tensor": "Each tensor has an all-reduce of its own, with messages of its own.",
    "p messages": "A ring of p ranks has p - 1 rounds.",
    "all-reduce": "An all-gather has p - 1 messages, and each carries all the n bytes of a rank.",
    "cut": "In an all-gather nothing is cut: each message carries all the n bytes of a rank.",
    "part of a time": "It sends after each `every`-th gradient, steps // every times: the gradients after the last of them are not sent.",
    "four ranks": "The number of ranks is an argument, and not always 4.",
    "message other": "Not what the judge's clock says: a message of n bytes takes (n + 64) / (the rate in bytes a second) + the delay in seconds.",
    "entry other": "Not what the judge's clock says: `steps` gradients, and steps // every times, for each tensor, 2 (ranks - 1) messages of n / ranks bytes.",
    "gathered other": "Not what the judge's clock says: in each of the steps a gradient, and then ranks - 1 messages of n bytes.",
    # pack
    "not one": "pack returns one tensor; this is a {got}.",
    "not dense": "unpack returns a tensor of {size} numbers; this is {got}.",
    "signed": "The largest with their signs were sent. What counts is how far a number is from 0.",
    "zero": "The numbers are not those that were there.",
    "too many": "{got} numbers are not 0, and {count} were to be sent.",
    "forgotten": "What was not sent is gone. The next step is to add to it.",
    "rounding lost": "A value is rounded to 16 bits, and what rounding has taken from it is lost: subtract from kept what arrives (the rounded value), and the rest stays there.",
    "apart": "pack and unpack run in different processes, as on different ranks: all that unpack needs is in the message.",
    "still there": "What was sent is still there: it would be sent again.",
    "large": "{got} bytes for {count} numbers. A place fits in 16 bits, a value too.",
    "wrapped": "Places from 32,768 on came out as others: 16 bits with a sign end at 32,767.",
    # entry
    "room": "A grader asks for 80 %, on other data, which may be harder: the rest is room for them.",
    "thin": "The check asks for {target:.0%} in each of three runs, on other data, and from data to data an entry's accuracy differs by some 0.013. "
            "{accuracy:.3f} has little room: take some more steps, and look at more data with runs=5.",
    "slow": "The judge's clock says {got:.2f} s; this rung is at {rung:.2f} s, and the baseline takes {baseline:.2f} s on these links.",
}

_ROUNDED = "The values were rounded to 16 bits before they were added up. Send them as they are."

MISTAKES |= {
    # find the bug
    "sparse no tensor": "sparse_step changes `weights` in place, and the ranks end with different shapes or numbers that are not finite.",
    "sparse once": "Where several ranks send the same place, only one of their values has arrived. In `total[places] += values`, a place that occurs several times is written several times, but not added up.",
    "sparse senders": "Each place is divided by the number of ranks that sent it. A rank that sends nothing for a place counts as 0 in the mean, and its part comes in a later step.",
    "sparse sum": "This is the sum over the ranks, not the mean.",
    "sparse own": "Each rank has taken only its own numbers, so the ranks drift apart.",
    "sparse same places": "All ranks have sent the places of one rank. Each rank sends those of its own numbers that are furthest from 0.",
    "sparse whole": "This is the step of the whole averaged gradient: more than `count` numbers of a rank have arrived.",
    "sparse not in place": "`weights` is what it was before the step. Change it in place, for example by `weights -= ...`; `weights = weights - ...` makes a new tensor, which the caller never sees.",
    "sparse signed": "The largest numbers with their signs were sent. The numbers that are furthest from 0 may be negative: take the places from `kept.abs()`.",
    "sparse still there": "What was sent is still in `kept`, so that it would be sent again. It must leave `kept` when it is sent.",
    "sparse forgotten": "What was not sent is lost. It must stay in `kept`, which is changed in place (`kept += gradient`), and only the places that were sent are set to 0.",
    "sparse float16": _ROUNDED,
    "sparse bfloat16": _ROUNDED,
    "sparse root": "The sum was divided by the square root of the number of ranks. The mean divides it by the number of ranks.",
    "sparse other": "These are not the weights of: kept += gradient; the `count` numbers of each rank that are furthest from 0; their sum over the ranks; weights -= rate * sum / ranks.",
    "sparse kept": "`kept` is not what it was, plus the gradient, less what was sent.",
}

HINTS = {
    "20-mended": (
        "Three mistakes, and one waste. Ask of each line: does one process with all the rows do that, in this order, with these numbers?",
        "Sort the lines into two groups: what a rank does for itself, and what belongs to the averaged gradient. What "
        "is computed from a gradient may only use the averaged one. One message needs one tensor, and "
        "`torch.nn.utils` has two functions that make a vector of several tensors and bring it back. Which of your "
        "tensors are the gradients, and which are the weights?",
    ),
    "20-price": (
        "Start with one message. Then: how many messages stand one after the other, how many bytes are in each?",
        "Print a single message first, and compare it with the challenge's rule for bits and bytes. A ring sends each "
        "tensor in as many pieces as there are ranks, and every piece is a message with its own head and delay. In an "
        "all-gather, no piece is cut. How many all-reduces does an entry of 10 steps make if it sends after every "
        "third gradient?",
    ),
    "20-pack": (
        "kept.abs().topk(count).indices are the places. A 16-bit integer without sign goes to 65,535: which dtype holds its bits, and how do you get it back?",
        "Place and value have 16 bits each, and one tensor can hold both if its dtype is the same for both. "
        "Converting a number changes its bits, a view does not. A place beyond 32,767 comes back negative, until its "
        "sign is undone. And what has to stay in `kept` is what the receiver does not get, not only the numbers that "
        "you left out.",
    ),
    "20-sparse": (
        "Let the ranks send a single number each, and compare two cases: all of them choose different places, or all choose the same place. Which of the two is wrong?",
        "It is a fault of indexing, not of communication. All the numbers arrive on every rank. Ask what an assignment to `total[index]` does if a place occurs in `index` several times.",
    ),
    "20-entry": (
        "Price before you run. How long does an entry take that sends one message a step, and how long with 16-bit "
        "numbers? How rarely may an entry send at most if it is to take a tenth of the baseline's time? Only the last "
        "two rungs need a new idea, and the tutorial names both.",
        "Two ideas of the tutorial send rarely: ranks train alone and average their weights from time to time, and "
        "the way between two averages can itself serve as a gradient. For the first idea, price several intervals, "
        "and let `try_out` show what each one costs in accuracy. The second idea needs fewer steps for the same "
        "accuracy; its rate and its momentum are yours to try.",
    ),
}

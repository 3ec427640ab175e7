"""The words of unit 20's checks: what each criterion says, the likely mistakes, and the hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, text)}}
    "mended": {
        "together": (1, "all ranks use all of their batches, and they end with equal weights"),
        "equal": (
            2,
            (
                "the weights at the end are what a single process computes from the batches of all "
                "four ranks in each step"
            ),
        ),
        "lean": (1, "each step makes one all-reduce, whose tensor holds all four gradients"),
    },
    "price": {
        "message": (1, "the seconds of one message are right"),
        "entry": (
            2,
            (
                "the seconds of an entry that all-reduces some tensors after each k-th gradient are"
                " right"
            ),
        ),
        "gathered": (
            1,
            "the seconds of an entry that all-gathers a message after each gradient are right",
        ),
    },
    "pack": {
        "largest": (
            1,
            (
                "unpack returns the numbers that are furthest from 0 at their old places, and 0 at "
                "all others"
            ),
        ),
        "kept": (
            1,
            (
                "afterwards, `kept` holds the numbers before it minus what unpack returns, so the "
                "error of rounding stays in it"
            ),
        ),
        "small": (
            1,
            (
                "the message is one tensor with at most 4 bytes for each number that is sent (and 8"
                " more)"
            ),
        ),
        "places": (1, "numbers at places beyond 32,767 are also returned at their places"),
    },
    "sparse": {
        "weights": (
            1,
            (
                "after a step, the weights of three ranks are what a single process computes from "
                "the sum of all numbers that were sent"
            ),
        ),
        "all": (
            1,
            (
                "if every number is sent, a step uses the averaged gradient, and what was not sent "
                "stays in `kept`"
            ),
        ),
    },
    "entry": {
        "right": (
            2,
            (
                "the accuracy reaches the target in all three runs, on new data and on links that "
                "you have not seen"
            ),
        ),
        "faster": (1, "the median time of the three runs is below the baseline's (first rung)"),
        "half": (1, "the median time is at most half of the baseline's (second rung)"),
        "fifth": (2, "the median time is at most a fifth of the baseline's (third rung)"),
        "tenth": (2, "the median time is at most a tenth of the baseline's (fourth rung)"),
    },
}

MISTAKES: Mistakes = {
    "no cell": (
        "An entry is the cell in which its function is written. Run that cell again, without a line"
        " that begins with %%, and hand in the function itself."
    ),
    "one cell": (
        "An entry is one cell, as it is one file in the hackathon, so everything that it uses must "
        "be imported or defined there."
    ),
    # mended
    "batches": (
        "Each rank gets {wanted} batches, but {got} gradients were asked for. Take one for each "
        "batch, and use all batches."
    ),
    "four tensors": (
        "A rank sent {got} messages in {steps} steps, although an all-reduce needs only 6. Put the "
        "gradients into one tensor (parameters_to_vector), all_reduce that, and put them back."
    ),
    "more bytes": (
        "A rank sent {got} bytes in {steps} steps, although one all-reduce in each sends {most} at "
        "most. Since an all-gather sends every rank the whole tensors of all the others, "
        "all_reduce one tensor instead."
    ),
    "sum": "the gradients are summed but not averaged",
    "add up": "the gradients are never reset, so they add up from step to step",
    "clip first": "each rank clips its own gradient before the average",
    "as if": "These are the weights of a training run in which {what}.",
    "other": (
        "These are not the weights that a single process computes, and the difference is "
        "{apart:.1%} of the way from the start. Use a learning rate of 0.1, momentum 0.9, and the "
        "averaged gradient, clipped to a norm of 2."
    ),
    "own": (
        "There were too few messages for an all-reduce in each step, as if each rank used its own "
        "gradients."
    ),
    # price
    "bits": "The rate is in Mbit/s, and 10 Mbit/s are 1.25 million bytes per second.",
    "delay": "The delay is in ms, so divide it by 1000.",
    "no head": "Each message has a head of 64 bytes, which is missing here.",
    "head once": "Each of the messages has a head and a delay, and not only the first.",
    "no delay": "A message also takes delay_ms on its way.",
    "each step": "The entry sends after each `every`-th gradient, and not after each one.",
    "no gradients": "The gradients take time too.",
    "not cut": (
        "A ring cuts a tensor into as many parts as there are ranks, so each message carries one "
        "part."
    ),
    "half the ring": (
        "A ring all-reduce is a reduce-scatter and an all-gather, so it needs 2 (p - 1) messages, "
        "one after the other."
    ),
    "one tensor": "Each tensor has a separate all-reduce, with separate messages.",
    "p messages": "A ring of p ranks has p - 1 rounds, and not p.",
    "all-reduce": (
        "Unlike an all-reduce, an all-gather has p - 1 messages, and each of them carries all n "
        "bytes of a rank."
    ),
    "cut": "In an all-gather nothing is cut, so each message carries all n bytes of a rank.",
    "part of a time": (
        "The entry sends after each `every`-th gradient, steps // every times, so the gradients "
        "after the last of them are not sent."
    ),
    "four ranks": "The number of ranks is an argument, and it is not always 4.",
    "message other": (
        "This is not what the judge's clock says. A message of n bytes takes (n + 64) / (the rate "
        "in bytes per second) + the delay in seconds."
    ),
    "entry other": (
        "This is not what the judge's clock says. Count `steps` gradients, and steps // every "
        "times, for each tensor, 2 (ranks - 1) messages of n / ranks bytes."
    ),
    "gathered other": (
        "This is not what the judge's clock says. Count one gradient in each of the steps, and then"
        " ranks - 1 messages of n bytes."
    ),
    # pack
    "not one": "pack must return one tensor, but this is a {got}.",
    "not dense": "unpack must return a tensor of {size} numbers, but this is {got}.",
    "signed": (
        "The largest numbers with their signs were sent, but what counts is how far a number is "
        "from 0."
    ),
    "zero": "The numbers differ from the ones that `kept` held before.",
    "too many": "{got} numbers are not 0, although {count} should have been sent.",
    "forgotten": "What was not sent is lost, although the next gradient should be added to it.",
    "rounding lost": (
        "A value is rounded to 16 bits, and what rounding has taken from it is lost. Subtract what "
        "arrives (the rounded value) from `kept`, so that the rest stays there."
    ),
    "apart": (
        "Since pack and unpack run in different processes, as on different ranks, everything that "
        "unpack needs must be in the message."
    ),
    "still there": "What was sent is still in `kept`, so it would be sent again.",
    "large": (
        "The message has {got} bytes for {count} numbers. A place fits in 16 bits, and so does a "
        "value."
    ),
    "wrapped": "Places from 32,768 on have changed, because 16 bits with a sign end at 32,767.",
    # entry
    "room": (
        "A grader asks for 80 %, on different data, which may be harder, so the rest is a margin "
        "for them."
    ),
    "thin": (
        "The check asks for {target:.0%} in each of three runs, on different data. Since an entry's"
        " accuracy differs by about 0.013 from data to data, {accuracy:.3f} leaves little margin. "
        "Take some more steps, and look at more data with runs=5."
    ),
    "slow": (
        "The judge's clock says {got:.2f} s, but this rung is at {rung:.2f} s, and the baseline "
        "takes {baseline:.2f} s on these links."
    ),
}

_ROUNDED = "The values were rounded to 16 bits before they were added up. Send them as they are."

MISTAKES |= {
    # find the bug
    "sparse no tensor": (
        "sparse_step must change `weights` in place, but the ranks end with different shapes or "
        "with numbers that are not finite."
    ),
    "sparse once": (
        "Where several ranks send the same place, only one of their values has arrived. For "
        "example, `total[places] += values` writes a place that occurs several times more than "
        "once, instead of adding up its values."
    ),
    "sparse senders": (
        "Each place is divided by the number of ranks that sent it. However, a rank that sends "
        "nothing for a place counts as 0 in the mean, and its part follows in a later step."
    ),
    "sparse sum": "This is the sum over the ranks, not the mean.",
    "sparse own": (
        "The ranks have different weights, as if each had used only its own numbers, so the ranks "
        "drift apart."
    ),
    "sparse same places": (
        "All ranks have sent the places of one rank. Instead, each rank must send the places where "
        "its numbers are furthest from 0."
    ),
    "sparse whole": (
        "This is the step of the whole averaged gradient, so more than `count` numbers of a rank "
        "have arrived."
    ),
    "sparse not in place": (
        "`weights` is what it was before the step. Change it in place, for example by `weights -= "
        "...`, because `weights = weights - ...` makes a new tensor, which the caller never sees."
    ),
    "sparse signed": (
        "The largest numbers with their signs were sent. Since the numbers that are furthest from 0"
        " may be negative, take the places from `kept.abs()`."
    ),
    "sparse still there": (
        "What was sent is still in `kept`, so it would be sent again. It must leave `kept` when it "
        "is sent."
    ),
    "sparse forgotten": (
        "What was not sent is lost. It must stay in `kept`, so change `kept` in place (`kept += "
        "gradient`), and set only the places that were sent to 0."
    ),
    "sparse float16": _ROUNDED,
    "sparse bfloat16": _ROUNDED,
    "sparse root": (
        "The sum was divided by the square root of the number of ranks. For the mean, divide it by "
        "the number of ranks."
    ),
    "sparse other": (
        "These are not the right weights. After kept += gradient, each rank sends the `count` "
        "numbers that are furthest from 0, and after their sum over the ranks, weights -= rate * "
        "sum / ranks."
    ),
    "sparse kept": "`kept` must be what it was, plus the gradient, minus what was sent.",
}

HINTS: Hints = {
    "20-mended": (
        (
            "There are three mistakes, and one waste. Ask of each line whether a single process "
            "with all the rows does that, in this order and with these numbers."
        ),
        (
            "Sort the lines into two groups, namely what a rank does for itself and what belongs to"
            " the averaged gradient. What is computed from a gradient may only use the averaged "
            "one. Since one message needs one tensor, use the two functions of `torch.nn.utils` "
            "that make a vector of several tensors and bring it back. Which of your tensors are "
            "the gradients, and which are the weights?"
        ),
    ),
    "20-price": (
        (
            "Start with one message. How many messages are sent one after the other, and how many "
            "bytes are in each of them?"
        ),
        (
            "First print a single message, and compare it with the challenge's rule for bits and "
            "bytes. A ring sends each tensor in as many pieces as there are ranks, and every piece "
            "is a message with its own head and delay, whereas no piece is cut in an all-gather. "
            "How many all-reduces does an entry of 10 steps make if it sends after every third "
            "gradient?"
        ),
    ),
    "20-pack": (
        (
            "kept.abs().topk(count).indices are the places. Since a 16-bit integer without a sign "
            "goes up to 65,535, which dtype holds its bits, and how do you get it back?"
        ),
        (
            "Place and value have 16 bits each, and one tensor can hold both if both have the same "
            "dtype. Converting a number changes its bits, whereas a view does not. A place beyond "
            "32,767 is returned negative until its sign is undone. What must stay in `kept` is "
            "everything that the receiver does not get, and not only the numbers that you left "
            "out."
        ),
    ),
    "20-sparse": (
        (
            "Let the ranks send a single number each, and compare two cases. In the first, all of "
            "them choose different places, and in the second, all choose the same place. Which of "
            "the two is wrong?"
        ),
        (
            "The fault is in the indexing and not in the communication, because all the numbers "
            "arrive on every rank. What does an assignment to `total[index]` do if a place occurs "
            "in `index` several times?"
        ),
    ),
    "20-entry": (
        (
            "Price before you run. How long does an entry take that sends one message per step, and"
            " how long does it take with 16-bit numbers? How rarely must an entry send if it may "
            "take only a tenth of the baseline's time? Only the last two rungs need a new idea, "
            "and the tutorial names both ideas."
        ),
        (
            "Two ideas of the tutorial send rarely. In the first, ranks train alone and average "
            "their weights from time to time. In the second, the way between two averages itself "
            "serves as a gradient. For the first idea, price several intervals, and let `try_out` "
            "show what each one costs in accuracy. The second idea needs fewer steps for the same "
            "accuracy, but you have to try its learning rate and its momentum."
        ),
    ),
}

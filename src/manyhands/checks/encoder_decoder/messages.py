"""The messages of unit 12's checks.

They say what each criterion asks for, the likely mistakes, and the hints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "ragged": {
        "outputs": (
            1,
            "one output for each sequence, as long as the sequence, in the order of the list",
        ),
        "state": (
            1,
            (
                "h and cell are the state after each sequence's own last element, for every layer "
                "and direction"
            ),
        ),
    },
    "loss": {
        "mean": (1, "every token counts once, and padding does not count"),
        "divisor": (1, "the sum is divided by the divisor that is given"),
    },
    "split": {
        "loss": (
            1,
            "the decoder's loss is what a single process computes, in two layouts of pairs",
        ),
        "decoder": (1, "the decoder's gradients are what a single process computes"),
        "encoder": (1, "the encoder's gradients are what a single process computes"),
        "messages": (
            1,
            "only the state crosses, and only its gradient comes back, in bytes and in messages",
        ),
    },
    "training": {
        "decoder": (
            1,
            "after four steps, the decoder's weights and losses are what a single process computes",
        ),
        "encoder": (1, "the same holds for the encoder's weights"),
    },
    "hybrid": {
        "decoders": (
            1,
            (
                "with uneven shares, the decoders' gradients are what a single process computes "
                "from the whole batch"
            ),
        ),
        "encoders": (1, "the same holds for the encoders' gradients"),
    },
}

MISTAKES: Mistakes = {
    "unwritten": "{name} is not written yet.",
    "unclaimed": (
        "A gradient came back for what the encoder sent, but it was never taken. The encoder must "
        "call backward() on what connects all its delegates."
    ),
    "known": {  # the best first
        "NotImplementedError": (
            "Your code calls a function of an earlier exercise that is not written yet."
        ),
        "float() argument must be": "decoder_step must return the loss as a number.",
        "backward through the graph a second time": (
            "Both delegates belong to one graph, so join them with "
            "pseudo_connect, and call backward() once for both."
        ),
        "does not require grad": (
            "A tensor here has no graph behind it. Call backward() on the loss, or on a delegate."
        ),
        "not enough values to unpack": (
            "What was received has fewer parts than you unpack. Was the tuple sent as one "
            "message, or h and cell in two messages?"
        ),
        "too many values to unpack": "What was received has more parts than you unpack.",
        "does not wait for the gradient": (
            "A gradient came back for what the encoder sent, but it was never taken. The "
            "encoder must call backward() on what connects all its delegates."
        ),
        "Give what send returned": (
            "A gradient came back for something that was sent, but it was never taken. The "
            "encoder must call backward() on what connects all its delegates."
        ),
        "It has sent send": (
            "Do both sides use the same tags, and does one side receive as often as the other one "
            "sends?"
        ),
        "waits in recv from": (
            "Do both sides use the same tags, and does one side receive as often as the other one "
            "sends?"
        ),
        "The gradient comes when": (
            "One side waits for a gradient that the other side never sends. Does the decoder "
            "call backward()?"
        ),
        " in allreduce": (
            "Gradients are averaged among ranks that hold the same module (the copies), whereas the"
            " two ranks of a pair hold different modules."
        ),
    },
    "raised": "On the {role}'s rank, your code raised an exception.",
    "waited": "On the {role}'s rank, a call did not go through.",
    "layout": ["encoder first in its pair", "decoder first in its pair, bidirectional encoder"],
    "traffic": "{messages} messages, {bytes} bytes",
    # run_ragged
    "ragged shapes": (
        "An output is not as long as its sequence. Remove the padding again, for example with "
        "unpack_sequence."
    ),
    "ragged count": "There must be one output for each sequence, in a list.",
    "ragged order": "The outputs are in a different order from the sequences.",
    "ragged outputs": "The values of an output are wrong.",
    "padded": (
        "The RNN went on over the padding, so h and cell are the state after the longest sequence's"
        " length. pack_sequence tells it where each sequence ends."
    ),
    "sorted": (
        "h and cell are in the order of the lengths. Use pack_sequence(..., enforce_sorted=False), "
        "so that they come back in the order of the list."
    ),
    "no start": "The given initial state was not used, so pass it to the RNN.",
    "other start": (
        "The outputs do not belong to the given initial state. Does each sequence start from its "
        "own column of it? If you sort the sequences, sort the state as well."
    ),
    "swapped": (
        "h and cell are swapped. An LSTM's state is (h, cell), in this order, on both sides."
    ),
    "state shape": (
        "The shape of h or cell is wrong. It must be [layers times directions, sequences, hidden], "
        "with all layers."
    ),
    "ragged state": "The values of h or cell are wrong.",
    # loss_of
    "mean of means": (
        "This is the mean over the sequences of each one's mean, in which a token of a short "
        "sequence counts more. Instead, sum over all tokens, and then divide once."
    ),
    "padding": "Padded positions are counted as if they were tokens to predict.",
    "padding zero": (
        "The sum is right, but it was divided by the number of positions, padding included. Divide "
        "it by the number of tokens, {tokens}."
    ),
    "sequences": (
        "The sum was divided by the number of sequences. Instead, divide it by the number of "
        "tokens, {tokens}."
    ),
    "sum": "This is the sum, which must be divided by the number of tokens, {tokens}.",
    "other loss": (
        "This is not the sum of the cross-entropies of all tokens, divided by their number, "
        "{tokens}."
    ),
    "divisor ignored": (
        "A divisor was given, {divisor}, but the loss is the same as without it. Divide the sum by "
        "it instead of by the number of tokens."
    ),
    "other sum": (
        "With divisor={divisor}, the same sum must be divided by {divisor}, but the sum is not "
        "right (see the criterion above)."
    ),
    "other divisor": (
        "With divisor={divisor}, the sum over all tokens must be divided by {divisor}."
    ),
    # encoder_step, decoder_step
    "only h": (
        "The decoder began with the right h and a cell of zeros. Send both, because an LSTM's state"
        " consists of two tensors."
    ),
    "only c": (
        "The decoder began with the right cell and an h of zeros. Send both, because an LSTM's "
        "state consists of two tensors."
    ),
    "h twice": (
        "h arrived twice, and the cell did not arrive at all. Give each message its own content and"
        " its own tag."
    ),
    "last layer": (
        "Only the last layer's state crossed, and it was used for all layers. Send all of h and "
        "cell."
    ),
    "last layer, zeros": "Only the last layer's state crossed. Send all of h and cell.",
    "state": (
        "The loss is not what a single process computes ({case}). Is every number of h and cell "
        "passed on, and divisor too?"
    ),
    "divisor forgotten": (
        "The divisor was given ({case}), but the loss is divided by the number of tokens. Pass the "
        "divisor on to the decoder."
    ),
    "no number": (
        "decoder_step must return the loss as a number, loss.item(), because a tensor would keep "
        "its graph."
    ),
    "twice": (
        "This is twice what is right ({case}). Nothing here must be multiplied by the number of "
        "ranks."
    ),
    "half": (
        "This is half of what is right, as if the loss was divided by the number of ranks ({case})."
        " The two ranks share one loss, so they need not average anything."
    ),
    "negative": "The sign is wrong ({case}).",
    "no gradient": (
        "The {role} has no gradient, because it is None or zero in {name}. Does its step call "
        "backward(), and was nothing detached before?"
    ),
    "c missing": (
        "The encoder's gradient lacks the part that comes back through the cell, because the cell's"
        " delegate was forgotten or detached. Join both delegates with pseudo_connect."
    ),
    "h missing": (
        "The encoder's gradient lacks the part that comes back through h, because the delegate of h"
        " was forgotten or detached. Join both delegates with pseudo_connect."
    ),
    "other gradient": "The gradient of {name} is wrong ({case}).",
    "nothing sent": (
        "Nothing from this rank crossed by manyhands.functions. The state must go one way, and its "
        "gradient must come back the other way."
    ),
    "too few bytes": (
        "Fewer bytes crossed than the state has, which is h and cell, with all layers."
    ),
    "too many bytes": (
        "More bytes crossed than the state has. The decoder needs neither the outputs, whose bytes "
        "grow with the length of the sequences, nor anything twice. (An object is pickled, which "
        "costs more bytes than its numbers, so use functions.send instead.)"
    ),
    "many messages": (
        "The bytes are right, but they crossed in too many messages. Send h and cell in two, or as "
        "a tuple in one."
    ),
    # train_split
    "unchanged": (
        "The {role}'s weights have not changed. Its own optimiser must step, on its own rank."
    ),
    "stale": (
        "Each step used the gradient of the batch before. The optimiser must step after backward, "
        "when the gradient has arrived."
    ),
    "cleared": (
        "The gradients that existed before were lost. The {role}'s function must add to grad, "
        "because only the training loop calls zero_grad()."
    ),
    "accumulated": (
        "Gradients of earlier batches are still in grad. Call zero_grad() once in every step, on "
        "both ranks."
    ),
    "other weights": (
        "{name} differs from what a single process computes. Use Adam over this rank's own "
        "parameters, with one step per batch, in order."
    ),
    "no losses": "The decoder's rank must return the loss of every batch, as a number.",
    "other losses": "The losses differ from what a single process computes.",
    # hybrid_step
    "mean of pairs": (
        "Each pair divided by its own number of tokens, and the results were averaged, so tokens of"
        " the smaller share count more. All decoders must divide by the same number."
    ),
    "alone": (
        "This is the gradient of the pair's own share, up to a factor, so the copies' gradients "
        "were not averaged here. Encoders and decoders each average with their own copies."
    ),
    "hybrid twice": (
        "This is twice what is right, as if the gradients were added up although the divisor was "
        "made for their mean. Divide by the tokens of all pairs for the sum, or by this number "
        "over the number of pairs for the mean."
    ),
    "hybrid half": (
        "This is half of what is right, as if you divided by the tokens of all pairs and then "
        "averaged. For a mean over the pairs, the divisor is the tokens of all pairs over the "
        "number of pairs."
    ),
    "hybrid negative": "The sign is wrong.",
    "one pair": (
        "With a single pair, the result differs from the gradient of the pair's own batch. Use "
        "copies.size for the number of pairs."
    ),
    "other factor": (
        "This is right up to a factor. By what do the decoders divide? Since the unit is a token "
        "and not a sequence, divide by the tokens of all pairs over the number of pairs."
    ),
    "other hybrid": (
        "The gradient of {name} is not what a single process computes from the whole batch."
    ),
}

HINTS: Hints = {  # {name: (where to look, nearly the code)}
    "12-ragged": (
        (
            "An RNN over padded sequences goes on over the padding. Of two functions that are "
            "imported above, one makes a PackedSequence from a list, and the other does the "
            "reverse. Which argument says that the longest sequence need not be the first, and "
            "what does the RNN then do with the order of the state?"
        ),
        (
            "packed, state = rnn(pack_sequence(sequences, enforce_sorted=False), state) returns the"
            " state in your order. unpack_sequence(packed) is the list of outputs."
        ),
    ),
    "12-loss": (
        (
            "Every token counts once, so first sum the losses of all tokens, over all targets, and "
            "divide once at the end. Padding cannot be counted unless you add it, so how do you "
            "join tensors of different lengths into one?"
        ),
        (
            'Compute total = cross_entropy(torch.cat(scores), torch.cat(targets), reduction="sum").'
            " Return total / divisor or, if divisor is None, total / the sum of the targets' "
            "lengths."
        ),
    ),
    "12-split": (
        (
            "Look at `step_by_hand` of the tutorial. What is sent must be received with the same "
            "tag, and a backward() must reach what send returns. The encoder has two such "
            "delegates, so one call must reach both. Here, the rank of the other side is an "
            "argument, because it is not always 1 or 0."
        ),
        (
            "The encoder calls phi_h = functions.send(h, c, decoder_rank, tag=0), the same for cell"
            " with tag=1, and functions.pseudo_connect(phi_h, phi_cell).backward(), since the tuple"
            " that pseudo_connect returns has this method. The decoder receives h and cell with "
            "functions.recv(c, encoder_rank, tag=...) with the same tags, computes loss = "
            "decoder((h, cell), targets, divisor), calls loss.backward(), and returns loss.item()."
        ),
    ),
    "12-training": (
        (
            "It is the loop of a single process, which clears the gradients, runs a step of "
            "exercise 3, and calls the optimiser. Both ranks run it, each with its own module and "
            "optimiser, so only the middle line differs. How does a rank know which line is its "
            "own?"
        ),
        (
            "For each (sources, targets), call optimiser.zero_grad(), then encoder_step(module, "
            "sources, c, 1) if c.rank == 0 and losses.append(decoder_step(module, targets, c, 0)) "
            "otherwise, and finally optimiser.step()."
        ),
    ),
    "12-hybrid": (
        (
            "The right loss is the sum over all tokens of all pairs, divided by their number. The "
            "gradients will be averaged, so they are divided by the number of pairs once more. "
            "Which divisor makes up for that? Which ranks know the number of tokens of the other "
            "pairs, and over which communicator can you ask them?"
        ),
        (
            "Encoders (pair.rank == 0) call encoder_step(module, sources, pair, 1). Decoders "
            "compute places = copies.allreduce_obj(the sum of the targets' lengths), and then call "
            "decoder_step(module, targets, pair, 0, divisor=places / copies.size). All ranks call "
            "copies.multi_node_mean_grad(module)."
        ),
    ),
}

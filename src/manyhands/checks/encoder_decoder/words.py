"""The words of unit 12's checks: what each criterion says, the likely mistakes, and the hints."""

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "ragged": {
        "outputs": (1, "one output for each sequence, as long as the sequence, in the order of the list"),
        "state": (1, "h and cell are those after each sequence's own last element, for every layer and direction"),
    },
    "loss": {
        "mean": (1, "every token counts once, padding counts nothing"),
        "divisor": (1, "the sum is divided by the divisor that is given"),
    },
    "split": {
        "loss": (1, "the decoder's loss is that of one process, in two layouts of pairs"),
        "decoder": (1, "the decoder's gradients are those of one process"),
        "encoder": (1, "the encoder's gradients are those of one process"),
        "messages": (1, "only the state travels, and only its gradient comes back: bytes and messages"),
    },
    "training": {
        "decoder": (1, "after four steps the decoder's weights and losses are those of one process"),
        "encoder": (1, "so are the encoder's weights"),
    },
    "hybrid": {
        "decoders": (1, "the decoders' gradients are those of one process with the whole batch, uneven shares"),
        "encoders": (1, "so are the encoders' gradients"),
    },
}

MISTAKES = {
    "unwritten": "{name} is not written yet.",
    "unclaimed": "A gradient came back for what the encoder sent, and nobody took it: the encoder must call backward() on what connects all its delegates.",
    "known": {  # the best first
        "NotImplementedError": "It calls something of an earlier exercise that is not written yet.",
        "float() argument must be": "decoder_step returns the loss as a number.",
        "backward through the graph a second time": "Both delegates hang on one graph: join them (pseudo_connect), and call backward() once for both.",
        "does not require grad": "A tensor here has no graph behind it: call backward() on the loss, or on a delegate.",
        "not enough values to unpack": "What came has fewer parts than you unpack: is the tuple sent as one, or h and cell in two messages?",
        "too many values to unpack": "What came has more parts than you unpack.",
        "does not wait for the gradient": "A gradient came back for what the encoder sent, and nobody took it: the encoder must call backward() on what "
                                          "connects all its delegates.",
        "Give what send returned": "A gradient came back for something that was sent, and nobody took it: the encoder must call backward() on "
                                   "what connects all its delegates.",
        "It has sent send": "Do both sides use the same tags, and do they send and receive equally often?",
        "waits in recv from": "Do both sides use the same tags, and do they send and receive equally often?",
        "The gradient comes when": "One side waits for a gradient that the other side never sends: does the decoder call backward()?",
        " in allreduce": "Gradients are averaged among ranks that hold the same module, the copies. In a pair, the modules differ.",
    },
    "raised": "On the {role}'s rank your code raised an exception.",
    "waited": "On the {role}'s rank a call did not go through.",
    "layout": ["encoder first in its pair", "decoder first in its pair, bidirectional encoder"],
    "traffic": "{messages} messages, {bytes} bytes",
    # run_ragged
    "ragged shapes": "An output is not as long as its sequence: take the padding off again (unpack_sequence does).",
    "ragged count": "There must be one output for each sequence, in a list.",
    "ragged order": "The outputs are in another order than the sequences.",
    "ragged outputs": "The values of an output are wrong.",
    "padded": "The RNN went on over the padding: h and cell are those after the longest sequence's length. pack_sequence tells it where each one ends.",
    "sorted": "h and cell are in the order of the lengths. pack_sequence(..., enforce_sorted=False) gives them back in the order of the list.",
    "no start": "The state that is given at the start was not used: hand it to the RNN.",
    "other start": "The outputs are those of another state at the start. Has each sequence its own column of it? Who sorts the sequences must sort the state as well.",
    "swapped": "h and cell are swapped: an LSTM's state is (h, cell), in this order, on both sides.",
    "state shape": "The shape of h or cell is wrong: [layers times directions, sequences, hidden], all layers.",
    "ragged state": "h or cell is wrong.",
    # loss_of
    "mean of means": "This is the mean over sequences of each one's mean: a token of a short sequence counts more. Sum over all tokens, then divide once.",
    "padding": "Padded places are counted as if they were tokens to predict.",
    "padding zero": "The sum is right, but it was divided by the number of places, padding included: there are {tokens} tokens.",
    "sequences": "The sum was divided by the number of sequences: there are {tokens} tokens.",
    "sum": "This is the sum. Divide by the number of tokens, {tokens}.",
    "other loss": "This is not the sum of the cross-entropies of all tokens, divided by their number, {tokens}.",
    "divisor ignored": "A divisor was given, {divisor}, and you divided by the number of tokens all the same.",
    "other sum": "With divisor={divisor} the same sum is divided by {divisor}, and the sum is not right: see the criterion above.",
    "other divisor": "With divisor={divisor} the sum over all tokens must be divided by {divisor}.",
    # encoder_step, decoder_step
    "only h": "The decoder began with the right h and a cell of zeros. An LSTM's state is two tensors: send both.",
    "only c": "The decoder began with the right cell and an h of zeros. An LSTM's state is two tensors: send both.",
    "h twice": "h came twice, and the cell not at all. Give each message its own content, and its own tag.",
    "last layer": "Only the last layer's state crossed, and stood in for all layers: send all of h and cell.",
    "last layer, zeros": "Only the last layer's state crossed: send all of h and cell.",
    "state": "The loss is not that of one process ({case}): is every number of h and cell handed on, and divisor too?",
    "divisor forgotten": "The divisor was given ({case}), and the loss is divided by the number of tokens: hand it on to the decoder.",
    "no number": "decoder_step returns the loss as a number, loss.item(): a tensor would keep its graph.",
    "twice": "Twice what is right: nothing here is to be multiplied by the number of ranks ({case}).",
    "half": "Half of what is right: the loss was divided by the number of ranks ({case}). The two ranks share one loss; they do not average two.",
    "negative": "The sign is wrong ({case}).",
    "no gradient": "The {role} has no gradient: nothing, or zeros, in {name}. Does its step call backward(), and was nothing detached before?",
    "c missing": "The encoder's gradient lacks what comes back through the cell: its delegate was forgotten, or it was detached. Join "
                 "both delegates by pseudo_connect.",
    "h missing": "The encoder's gradient lacks what comes back through h: its delegate was forgotten, or it was detached. Join "
                 "both delegates by pseudo_connect.",
    "other gradient": "The gradient of {name} is wrong ({case}).",
    "nothing sent": "From this rank nothing crossed by manyhands.functions: the state goes one way, its gradient comes back the other way.",
    "too few bytes": "Less crossed than the state has: h and cell, all layers.",
    "too many bytes": "More crossed than the state has. The decoder needs neither the outputs nor anything twice: the bytes would grow with the length "
                      "of the sequences. (An object is pickled, which costs more than its numbers: functions.send.)",
    "many messages": "The right bytes in too many messages: h and cell are two, or one tuple.",
    # train_split
    "unchanged": "The {role}'s weights have not changed: its own optimiser must step, on its own rank.",
    "stale": "Each step used the gradient of the batch before: the optimiser must step after backward, when the gradient has come.",
    "cleared": "The gradients that were there before are gone: the {role}'s function adds to grad. zero_grad() is the training loop's.",
    "accumulated": "Gradients of earlier batches are still in grad: zero_grad() once in every step, on both ranks.",
    "other weights": "{name} differs: Adam over this rank's own parameters, one step per batch, in the order of the batches.",
    "no losses": "The decoder's rank returns the loss of every batch, as a number.",
    "other losses": "The losses differ from those of one process.",
    # hybrid_step
    "mean of pairs": "Each pair divided by its own number of tokens, and the results were averaged: tokens of the smaller share count more. "
                     "All decoders must divide by the same number.",
    "alone": "This is the gradient of the pair's own share, up to a factor: the copies' gradients were not averaged here. Encoders and decoders each average "
             "with their own copies.",
    "hybrid twice": "Twice what is right: the gradients were added up, and the divisor was made for their mean. Divide by the tokens of all for the sum, "
                    "by the tokens of all over the number of pairs for the mean.",
    "hybrid half": "Half of what is right: you divided by the tokens of all, and then averaged. For a mean over the pairs the divisor is the tokens of all "
                   "over the number of pairs.",
    "hybrid negative": "The sign is wrong.",
    "one pair": "With a single pair, the result is not that of the pair's own batch: take the number of pairs from copies.size.",
    "other factor": "Right, up to a factor: what do the decoders divide by? A token is the unit, not a sequence: the tokens of all over the number of pairs.",
    "other hybrid": "The gradient of {name} is not that of the whole batch.",
}

HINTS = {  # {name: (where to look, nearly the code)}
    "12-ragged": (
        "An RNN over padded sequences goes on over the padding. Two functions are imported above that make a PackedSequence of a list and a list of a PackedSequence. "
        "Which argument says that the longest one need not come first, and what does the RNN then do with the order of the state?",
        "packed, state = rnn(pack_sequence(sequences, enforce_sorted=False), state): the state comes back in your order. unpack_sequence(packed) is the list of outputs.",
    ),
    "12-loss": (
        "Every token counts once, so first add up all of them, over all targets, and divide once at the end. Where there is no padding, none can be counted: how "
        "do you put tensors of different lengths in one row?",
        "total = cross_entropy(torch.cat(scores), torch.cat(targets), reduction=\"sum\"); then total / divisor, or, where divisor is None, total / the sum of the "
        "targets' lengths.",
    ),
    "12-split": (
        "Look at `step_by_hand` of the tutorial. What is sent must arrive under the same tag, and what send returns must be reached by a backward: the encoder has two "
        "of these, and one call must reach both. Here the rank of the other side is an argument, it is not always 1 or 0.",
        "Encoder: phi_h = functions.send(h, c, decoder_rank, tag=0), the same for cell with tag=1, and functions.pseudo_connect(phi_h, phi_cell).backward(): the tuple "
        "that pseudo_connect gives has this method. Decoder: h and cell by functions.recv(c, encoder_rank, tag=...) with the same tags, loss = decoder((h, cell), "
        "targets, divisor), loss.backward(), and return loss.item().",
    ),
    "12-training": (
        "It is the loop of a single process: gradients cleared, a step of exercise 3, the optimiser. Both ranks run it, each with its own module and its own "
        "optimiser; only the middle line differs. What tells a rank which one is its own?",
        "For each (sources, targets): optimiser.zero_grad(); if c.rank == 0: encoder_step(module, sources, c, 1), else losses.append(decoder_step(module, targets, c, 0)); "
        "optimiser.step().",
    ),
    "12-hybrid": (
        "The right loss is the sum over all places of all pairs, divided by their number. The gradients will be averaged, so divided by the number of pairs once more: "
        "which divisor takes that back? Who knows the number of places of the other pairs, and over which communicator can it be asked?",
        "Encoders (pair.rank == 0): encoder_step(module, sources, pair, 1). Decoders: places = copies.allreduce_obj(the sum of the targets' lengths), then "
        "decoder_step(module, targets, pair, 0, divisor=places / copies.size). All: copies.multi_node_mean_grad(module).",
    ),
}

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
    "other divisor": "With divisor={divisor} the sum over all tokens must be divided by {divisor}.",
    # encoder_step, decoder_step
    "only h": "The decoder began with the right h and a cell of zeros. An LSTM's state is two tensors: send both.",
    "only c": "The decoder began with the right cell and an h of zeros. An LSTM's state is two tensors: send both.",
    "h twice": "h came twice, and the cell not at all. Give each message its own content, and its own tag.",
    "last layer": "Only the last layer's state crossed, and stood in for all layers: send all of h and cell.",
    "last layer, zeros": "Only the last layer's state crossed: send all of h and cell.",
    "state": "The loss is not that of one process ({case}): is every number of h and cell handed on, and divisor too?",
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
                      "of the sequences.",
    "many messages": "The right bytes in too many messages: h and cell are two, or one tuple.",
    # train_split
    "unchanged": "The {role}'s weights have not changed: its own optimiser must step, on its own rank.",
    "stale": "Each step used the gradient of the batch before: the optimiser must step after backward, when the gradient has come.",
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
    "other hybrid": "The gradient of {name} is not that of the whole batch.",
}

HINTS = {
    "12-ragged": "packed = pack_sequence(sequences, enforce_sorted=False). rnn(packed, state) gives packed outputs and the state, in your order; "
                 "unpack_sequence gives the list.",
    "12-loss": "torch.cat(scores) and torch.cat(targets) put all tokens in one row, without padding: cross_entropy(..., reduction=\"sum\") over it, "
               "then one division.",
    "12-split": "Encoder: phi_h = functions.send(h, c, decoder_rank, tag=0), the same for cell with tag=1, and "
                "functions.pseudo_connect(phi_h, phi_cell).backward(): the tuple that pseudo_connect gives has this method. Decoder: functions.recv "
                "with the same tags, decoder((h, cell), targets, divisor), loss.backward().",
    "12-training": "On both ranks the same loop: zero_grad, this rank's step, optimiser.step(). c.rank says which step is yours.",
    "12-hybrid": "The decoders add up their numbers of tokens: copies.allreduce_obj(number). With copies.multi_node_mean_grad(module), gradients are divided by the "
                 "number of pairs, so the divisor must be the tokens of all, divided by copies.size. Encoders only average.",
}

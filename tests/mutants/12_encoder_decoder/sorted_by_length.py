"""The sequences are sorted for pack_sequence, and the state stays in that order.

fails: ragged/state
shows: h and cell are in the order of the lengths
points: 11
"""
# %% grade_id="ragged"
# %%px --setup
def run_ragged(rnn, sequences, state=None):
    order = sorted(range(len(sequences)), key=lambda i: -len(sequences[i]))
    if state is not None:
        state = tuple(part[:, order] for part in state)
    packed, state = rnn(pack_sequence([sequences[i] for i in order]), state)
    outputs = unpack_sequence(packed)
    return [outputs[order.index(i)] for i in range(len(sequences))], state

"""The sequences are sorted by length, the state that is given is not, and the state that comes back is not put back.

fails: ragged/outputs, ragged/state
shows: If you sort the sequences, sort the state as well
points: 10
runs: ragged
"""
# %% grade_id="ragged"
# %%px
def run_ragged(rnn, sequences, state=None):
    order = sorted(range(len(sequences)), key=lambda i: -len(sequences[i]))
    packed, state = rnn(pack_sequence([sequences[i] for i in order]), state)
    found = unpack_sequence(packed)
    outputs = [None] * len(order)
    for i, o in zip(order, found): outputs[i] = o
    return outputs, state

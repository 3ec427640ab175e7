"""The state that is given at the start is forgotten.

fails: ragged/outputs, ragged/state
shows: The given initial state was not used
points: 10
"""
# %% grade_id="ragged"
# %%px --setup
def run_ragged(rnn, sequences, state=None):
    packed, state = rnn(pack_sequence(sequences, enforce_sorted=False))
    return unpack_sequence(packed), state

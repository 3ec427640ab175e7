"""The outputs keep their padding.

fails: ragged/outputs
shows: An output is not as long as its sequence
points: 11
"""
# %% grade_id="ragged"
# %%px --setup
def run_ragged(rnn, sequences, state=None):
    packed, state = rnn(pack_sequence(sequences, enforce_sorted=False), state)
    padded, _ = torch.nn.utils.rnn.pad_packed_sequence(packed)
    return list(padded.unbind(1)), state

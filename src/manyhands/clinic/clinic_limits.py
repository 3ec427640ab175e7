"""How long the clinic and `predict` run a script, and how much of it they record and show."""

CLINIC_RANKS = 4  # by default
PREDICT_RANKS = 2  # by default, of the second run
MOST_RANKS = 1_000_000  # of a prediction: each is a slot of an array
TIMEOUT_S = 300.0  # of a run, by default

# steps; of those measured the first is not counted
RECORDED_STEPS, MEASURED_STEPS = 4, 5
STEPS = RECORDED_STEPS + MEASURED_STEPS  # of a visit, and of a rehearsal
# how long the next epoch, and the other ranks, are waited for
NEXT_EPOCH_S, OTHERS_S = 10, 30
AVERAGE_S = 5  # how long an average of the weights is waited for

REPORT_PERIOD_S = 0.2  # of a rank's reports, and of looking at them
STALE_S = 3.0  # a report that is older says nothing
# a rank that has not reported for so long is looked at from outside, so often
OUTSIDE_AFTER_S, OUTSIDE_S = 2.0, 0.5

RECORDED_NUMBERS = 2_000_000  # of a model; of a larger one every n-th is recorded
RECORDED_MESSAGES = 2000  # of a step
RECORDED_INDICES = 4096  # of a drawn order, or of a loader's batches
SHOWN_NAMES = 4  # of parameters, or of files
LAST_LINES = 8  # of what a rank printed: there a library says why it has ended the process
SIMULATED_STEPS = 5  # of a prediction, with different late ranks in each

"""The exit codes of `manyhands clinic` and `manyhands predict`, and of ranks that are stopped."""

NOTHING_FOUND, FOUND, SCRIPT_FAILED, NOT_DETERMINED = 0, 1, 2, 3
RANK_STOPPED = 70  # of a rank that was stopped because all of them wait

"""The check's own answer is imported.

fails: seen/OFF, seen/DATA, seen/FILE
shows: the package's own answer, which is closed here
points: 13
runs: seen
"""
# %% grade_id="seen"
from manyhands.checks.multiworker.diagnosis import who_sees

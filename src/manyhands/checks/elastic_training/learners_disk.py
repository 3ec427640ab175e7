"""The folder into which the learner's `save` writes and from which `latest` reads, in the check of
checkpoints.
"""

from manyhands.checks.elastic_training import diagnosis
from manyhands.checks.elastic_training.disk_faults import files, read_in_process, save_in_process
from manyhands.checks.report import Stopped


class LearnersDisk:
    """The learner's functions on one folder, and the states that have not been saved yet, oldest
    step first.
    """

    def __init__(self, save, latest, folder, report):
        self.save, self.latest, self.folder, self.draw = save, latest, folder, report.rng
        folder.mkdir()
        # written: {step: the files that its save has made}
        self.states, self.newest, self.written = {}, -1, {}

    def next(self, again=False, **how):
        """Save the next state (`again`: the one that was not saved), and return how it ended.

        Without `how`, it must work.
        """
        step, before = min(step for step in self.states if step > self.newest), files(self.folder)
        saved = save_in_process(self.save, self.states[step], self.folder, step, **how)
        if not how and (saved.error or saved.killed_by):
            raise Stopped(
                diagnosis.say("leftovers", error=saved.error or saved.killed_by)["mistake"]
                if again
                else saved.error or saved.killed_by
            )
        if not how or how == {"watch": "record"}:
            self.newest = step
            self.written[step] = [
                path for path, what in files(self.folder).items() if before.get(path) != what
            ]
        return saved

    def checkpoints(self):
        """Return {path: bytes} of what the whole saves have left in the folder."""
        return {
            path: path.read_bytes()
            for paths in self.written.values()
            for path in paths
            if path.is_file()
        }

    def read(self, step=None):
        """Return (problem, what `latest` returned).

        The checkpoint of `step`, by default the last that was saved, is the newest whole one.
        """
        step, read = (
            self.newest if step is None else step,
            read_in_process(self.latest, self.folder),
        )
        if "is not written yet" in read.error:
            raise Stopped(read.error)
        state = self.states.get(step)
        return (
            diagnosis.read_problem(
                read, step, float(state["weights"].sum()) + state["seen"] if state else 0.0
            ),
            read,
        )

    def bytes(self, size):
        """Return the size of a hidden part of a file."""
        return int(self.draw.uniform(0.15, 0.85) * size)

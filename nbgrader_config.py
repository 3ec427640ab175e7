"""For instructors: nbgrader's own commands and formgrader, when they are started here
(docs/GRADING.md).

What may be set beside it stands in nbgrader's documentation, for example
`c.AssignLatePenalties.plugin_class = ...` or `c.ExchangeCollect.before_duedate = True`.
"""

from pathlib import Path

from manyhands.grading.classroom import configure

c = get_config()  # noqa: F821 (nbgrader gives it)
configure(c, Path(__file__).resolve().parent)

"""Settings for instructors who start nbgrader's own commands or formgrader in this folder.

See docs/GRADING.md. nbgrader's documentation lists what else you may set here, for example
`c.AssignLatePenalties.plugin_class = ...` or `c.ExchangeCollect.before_duedate = True`.
"""

from pathlib import Path

from manyhands.grading.classroom import configure

c = get_config()  # noqa: F821 (nbgrader gives it)
configure(c, Path(__file__).resolve().parent)

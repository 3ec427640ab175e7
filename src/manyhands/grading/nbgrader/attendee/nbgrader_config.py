"""For the Assignment List on an attendee's server.

This folder is on the server's JUPYTER_CONFIG_PATH where there is an exchange.
"""

import os
from pathlib import Path

from manyhands.grading.nbgrader.exchange import use_as_attendee

use_as_attendee(get_config(), Path(os.environ["MANYHANDS_ROOT"]) / "work")  # noqa: F821 (nbgrader gives it)

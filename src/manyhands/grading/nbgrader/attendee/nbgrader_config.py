"""For the Assignment List on an attendee's server.

This folder is on the server's JUPYTER_CONFIG_PATH where there is an exchange.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.grading.nbgrader.exchange import use_as_attendee

if TYPE_CHECKING:  # nbgrader gives it
    from traitlets.config.application import get_config

use_as_attendee(get_config(), Path(os.environ["MANYHANDS_ROOT"]) / "work")

"""What `jupyterhub --config` reads."""

import os

from manyhands.hub import settings

settings.configure(c, settings.from_text(os.environ[settings.VARIABLE]))  # noqa: F821 (JupyterHub puts `c` there)

"""What `jupyterhub --config` reads."""

import os

from tornado.httpserver import HTTPServer

from manyhands.hub import settings
from manyhands.hub.connections import HubServer

HTTPServer.configure(HubServer)
settings.configure(c, settings.from_text(os.environ[settings.VARIABLE]))  # noqa: F821 (JupyterHub puts `c` there)

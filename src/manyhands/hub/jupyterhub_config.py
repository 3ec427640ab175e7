"""What `jupyterhub --config` reads."""

import os

from tornado.httpserver import HTTPServer

from manyhands.hub import jupyterhub_settings
from manyhands.hub.connections import HubServer, read_cookies_quickly

read_cookies_quickly()
HTTPServer.configure(HubServer)
settings = jupyterhub_settings.from_text(os.environ[jupyterhub_settings.VARIABLE])
jupyterhub_settings.configure(c, settings)  # type: ignore[name-defined]  # noqa: F821 (JupyterHub puts `c` there)

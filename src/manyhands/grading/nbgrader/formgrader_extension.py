"""nbgrader's formgrader for a server that many people reach.

It has the same pages and buttons, at narrower addresses.

A Jupyter server extension. nbgrader takes whatever stands in an address for the name of a lab or an
attendee, `../..` too, runs the `nbgrader_config.py` of any folder that is asked for by `?path=`,
and hands out any file of the clone below `submissions/`. Our server runs with the rights of whoever
runs the hub, so here a name is a name, and those two doors are shut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbgrader.server_extensions.formgrader import apihandlers, formgrader, handlers
from tornado import web

from manyhands.grading.nbgrader import gradebook
from manyhands.grading.nbgrader.class_settings import Classroom

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = r"[A-Za-z0-9_][A-Za-z0-9_.@-]*"
# what is shown of a submission needs no other files: `autograded.py` makes it all text
SHUT = handlers.SubmissionFilesHandler


def before_work() -> None:
    """Called before nbgrader does what a button asks for.

    Whoever starts the server may replace it.
    """


class Start(handlers.BaseHandler):
    """The first page."""

    @web.authenticated
    def get(self) -> None:
        """Lead to the list of labs."""
        self.redirect(f"{self.base_url}/formgrader/manage_assignments")


def announced(handler: type[web.RequestHandler]) -> type[web.RequestHandler]:
    """The handler, or one that calls `before_work` before it does what a POST asks for."""
    if not hasattr(handler, "post") or handler.post is web.RequestHandler.post:
        return handler

    def post(self: Any, *arguments: str) -> Any:
        before_work()
        return super(made, self).post(*arguments)  # type: ignore[arg-type]  # it is a class

    made = type(handler.__name__, (handler,), {"post": post})
    return made


def narrow(routes: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The same handlers with stricter addresses."""
    opened = [
        (pattern.replace("[^/]+", NAME), handler, *options)
        for pattern, handler, *options in routes
        if handler is not SHUT
    ]
    return [
        (pattern, Start if handler is handlers.FormgraderHandler else announced(handler), *options)
        for pattern, handler, *options in opened
    ]


def load_jupyter_server_extension(app: Any) -> None:
    """Called by the server when it starts."""
    with gradebook.opened(Classroom(app.root_dir)):
        pass  # there is one from now on, and it is nobody else's to read
    for part in (handlers, apihandlers):
        part.default_handlers = narrow(part.default_handlers)
    formgrader.load_jupyter_server_extension(app)

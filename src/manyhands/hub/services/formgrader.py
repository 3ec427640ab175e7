"""The hub's service for instructors: nbgrader's formgrader, and nothing else of a Jupyter server.

`python -m manyhands.hub.services.formgrader`, started by the hub in the clone, with the hub's
rights: the gradebook is theirs, and *Autograde* runs submissions in the sandbox, which cannot be
made inside a sandbox. No files, kernels or terminals are served, so that whoever may give grades has
not the whole machine. Who may enter is decided by the hub: see `settings.py`.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from jupyter_server.serverapp import ServerApp
from jupyter_server.services.contents.manager import ContentsManager
from jupyterhub.singleuser.extension import JupyterHubSingleUser

from manyhands.hub.services import hub_auth, watchdog

if TYPE_CHECKING:
    from typing import Any


PAGE_S = 180  # a page about a whole class, on a busy machine
# nbgrader does what a button asks for in the event loop, and grading one lab may take 900 s
WORK_S = 3600


class NoFiles(ContentsManager):
    """A Jupyter server must have one."""

    def get_extra_handlers(self) -> list[tuple[Any, ...]]:
        """Return no handlers: no files, kernels or terminals are served."""
        return []


class FormgraderServer(ServerApp):
    """Jupyter's server with the hub's log-in and formgrader."""

    # of a type that counts Jupyter's own services
    default_services = ()  # type: ignore[assignment]

    def find_server_extensions(self) -> None:
        """None of those that are installed."""

    def start_ioloop(self) -> None:
        """Watch over the event loop, and begin to serve."""
        self.io_loop.add_callback(watchdog.watch, PAGE_S)
        super().start_ioloop()


def arguments(root: str) -> list[str]:
    """Command line options of the server."""
    return [
        f"--ServerApp.root_dir={root}",
        "--ServerApp.allow_root=True",
        "--ServerApp.default_url=/formgrader/manage_assignments",
        "--ServerApp.jpserver_extensions={'manyhands.grading.nbgrader.formgrader_extension': True}",
        "--ServerApp.contents_manager_class=manyhands.hub.services.formgrader.NoFiles",
        "--FormgradeExtension.debug=False",
    ]


def main() -> None:
    """Run formgrader with the class's gradebook, until it is ended."""
    from manyhands.grading.nbgrader import formgrader_extension

    # nbgrader starts `alembic` by its name
    os.environ["PATH"] = os.pathsep.join(
        [os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]
    )
    formgrader_extension.before_work = partial(watchdog.allow, WORK_S)
    hub_auth.use_in_jupyter_server()
    JupyterHubSingleUser.serverapp_class = FormgraderServer
    JupyterHubSingleUser.launch_instance(arguments(os.environ["MANYHANDS_ROOT"]))


if __name__ == "__main__":
    main()

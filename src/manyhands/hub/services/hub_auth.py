"""How a service asks the hub who sends a request.

Its event loop never waits for the answer.

JupyterHub's `HubAuth.get_user` can also be called synchronously. It then runs in a pool of one
thread, while the loop's thread waits. Code that runs in that thread and calls it again waits for
itself, and the service answers no request anymore. JupyterHub and tornado call it where a handler
has not asked before: where they check `_xsrf`, for example. So here a synchronous call only returns
what `ask_first` has found, and each handler must ask in `prepare`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyterhub.services.auth import HubOAuth, HubOAuthCallbackHandler

from manyhands.hub.connections import read_cookies_quickly

if TYPE_CHECKING:
    from typing import Any, NoReturn

    from tornado.web import RequestHandler


read_cookies_quickly()
WAITS = "A service must not wait for the hub: await the answer with sync=False."


class AsyncHubOAuth(HubOAuth):
    """JupyterHub's authentication, which queries the hub asynchronously only."""

    def get_user(self, handler: RequestHandler, *, sync: bool = True) -> Any:
        """The user, to be awaited with sync=False.

        Otherwise it is what was found before, None where nothing was.
        """
        return (
            getattr(handler, "_cached_hub_user", None)
            if sync
            else super().get_user(handler, sync=False)
        )

    def _synchronize(self, async_f: object, *args: object, **kwargs: object) -> NoReturn:
        raise RuntimeError(WAITS)


async def ask_first(handler: Any) -> None:
    """Ask the hub who has sent this request; for a handler's `prepare`."""
    await handler.hub_auth.get_user(handler, sync=False)


class Callback(HubOAuthCallbackHandler):
    """JupyterHub sends a browser here after a log-in."""

    def initialize(self, hub_auth: AsyncHubOAuth) -> None:
        """Keep what asks the hub; tornado calls it for each request."""
        self.hub_auth = hub_auth

    async def prepare(self) -> None:
        """Ask the hub who sends the request, before anything is answered."""
        await ask_first(self)


def use_in_jupyter_server() -> None:
    """Let the server of `JupyterHubSingleUser`, which this process will start, ask in this way."""
    from jupyterhub.singleuser import extension

    extension.HubOAuth = AsyncHubOAuth
    extension.JupyterHubOAuthCallbackHandler.prepare = Callback.prepare

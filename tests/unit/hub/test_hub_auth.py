"""No service of the hub waits for the hub inside its event loop.

What refused requests do to a running hub is in tests/hub/test_services_stay.py.
"""

import http.cookies
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from jupyterhub.services.auth import HubAuthenticated
from jupyterhub.singleuser import extension

from manyhands.hub.board.service import application
from manyhands.hub.services import hub_auth

HUB = Path(hub_auth.__file__).parents[1]


def test_a_synchronous_query_gives_what_was_found_before_and_waits_for_nothing():
    auth = hub_auth.AsyncHubOAuth(oauth_client_id="service-x", api_token="x")
    assert auth.get_user(SimpleNamespace()) is None
    assert auth.get_user(SimpleNamespace(_cached_hub_user={"name": "ann"})) == {"name": "ann"}
    with pytest.raises(RuntimeError, match="must not wait for the hub"):
        auth.user_for_token("token")


def test_each_page_of_the_board_asks_before_anything_else_does():
    routes = (
        application(SimpleNamespace(), SimpleNamespace(base_url="/services/board/"))
        .default_router.rules[-1]
        .target.rules
    )
    pages = [rule.target for rule in routes if issubclass(rule.target, HubAuthenticated)]
    assert len(pages) == 8
    assert all("ask_first" in page.prepare.__code__.co_names for page in pages)


def test_no_other_part_of_the_hub_uses_the_classes_that_wait():
    files = {
        str(path.relative_to(HUB))
        for path in HUB.rglob("*.py")
        if re.search(r"\bHub(OAuth|Auth|OAuthCallbackHandler)\b(?!enticated)", path.read_text())
    }
    assert files == {"services/hub_auth.py"}


def test_a_jupyter_server_asks_in_the_same_way(monkeypatch):
    monkeypatch.setattr(extension, "HubOAuth", extension.HubOAuth)
    monkeypatch.setattr(extension.JupyterHubOAuthCallbackHandler, "prepare", None)
    hub_auth.use_in_jupyter_server()
    provider = extension.JupyterHubIdentityProvider()
    assert isinstance(provider.hub_auth, hub_auth.AsyncHubOAuth)
    assert extension.JupyterHubOAuthCallbackHandler.prepare is hub_auth.Callback.prepare


def test_a_cookie_of_backslashes_is_decoded_at_once():
    began = time.process_time()
    assert http.cookies.SimpleCookie('_xsrf="' + "\\" * 32_000 + '"')["_xsrf"].value
    assert time.process_time() - began < 5, "Python 3.11.7 alone takes 18 s"

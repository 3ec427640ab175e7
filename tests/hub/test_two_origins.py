"""The proxy's two doors, without a hub.

What is behind which, however its address is written, and what a request may carry.
"""

import json
import os
import socket
import subprocess
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests

from hub.running_hub import ROOT, wait_for
from manyhands.hub.services import proxy
from manyhands.learner.jupyter_server import end_with_parent

SECRET = {"Authorization": "token secret"}


class Echo(BaseHTTPRequestHandler):
    """Tells who it is, and the headers that reached it."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.headers.get("Upgrade"):
            return self.talk()
        text = json.dumps(
            {
                "who": self.server.who,
                "headers": {name.lower(): value for name, value in self.headers.items()},
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def talk(self):
        """Speak on and on, as a server does over a web socket, until the other side is gone."""
        self.close_connection = True
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.end_headers()
        with suppress(OSError):
            for _ in range(2000):
                self.wfile.write(bytes(1000))
                time.sleep(0.001)

    def log_message(self, *_):
        """Nothing."""


class Doors:
    """A running proxy: `at(door, path)` asks at the door "hub" or "servers"."""

    def __init__(self, targets, behind):
        with (
            socket.create_server(("127.0.0.1", 0)) as first,
            socket.create_server(("127.0.0.1", 0)) as second,
            socket.create_server(("127.0.0.1", 0)) as third,
        ):
            self.ports = dict(
                zip(
                    ("hub", "servers", "api"),
                    (listener.getsockname()[1] for listener in (first, second, third)),
                    strict=True,
                )
            )
        given = {
            "ip": "127.0.0.1",
            "port": self.ports["hub"],
            "api-ip": "127.0.0.1",
            "api-port": self.ports["api"],
            "log-level": "ERROR",
            "error-target": f"http://127.0.0.1:{targets['/']}/",
            "doors": json.dumps(
                {"servers_port": self.ports["servers"], "names": {}, "behind": behind}
            ),
        }
        self.process = subprocess.Popen(
            [
                *proxy.command(ROOT / ".manyhands"),
                *(f"--{name}={value}" for name, value in given.items()),
            ],
            env=os.environ | {"CONFIGPROXY_AUTH_TOKEN": "secret"},
            preexec_fn=end_with_parent,
        )
        for path, port in targets.items():
            wait_for(
                lambda path=path, port=port: self._add(path, port),
                "the proxy does not answer",
                timeout_s=60,
            )

    def _add(self, path, port):
        try:
            return requests.post(
                f"http://127.0.0.1:{self.ports['api']}/api/routes{path}",
                json={"target": f"http://127.0.0.1:{port}"},
                headers=SECRET,
                timeout=60,
            ).ok
        except requests.ConnectionError:
            return False

    def address(self, door):
        return f"http://127.0.0.1:{self.ports[door]}"

    def at(self, door, path, **headers):
        return requests.get(
            self.address(door) + path,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
            allow_redirects=False,
            timeout=60,
        )


@pytest.fixture(scope="module")
def start_doors():
    """`start_doors(*behind)`: a proxy in front of a hub and of ann's server."""
    targets, started, servers = {}, [], []
    for path, who in (("/", "hub"), ("/user/ann", "ann")):
        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Echo))
        servers[-1].who = who
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        targets[path] = servers[-1].server_address[1]

    def start(*behind):
        started.append(Doors(targets, behind))
        return started[-1]

    yield start
    for doors in started:
        doors.process.terminate()
        doors.process.wait(60)
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def doors(start_doors):
    return start_doors()


@pytest.mark.parametrize(
    ("path", "who"),
    [
        ("/user/ann/lab?x=1", "ann"),
        ("/%75ser/ann/", "ann"),
        ("/user%2Fann/x", "ann"),
        ("/user/ann", "ann"),
        ("/hub/../user/ann/x", "ann"),
        ("/", "hub"),
        ("/user/ben/lab", "hub"),
        ("/services/formgrader/", "hub"),
        ("/user/annette/", "hub"),
        ("//user/ann/x", "hub"),
        ("/%zz", "hub"),
    ],
)
def test_what_is_behind_one_door_is_not_behind_the_other(doors, path, who):
    """An address of ann's server is sent on to its door, any other to the hub's.

    No way to write it leads to the one through the other.
    """
    right, wrong = ("servers", "hub") if who == "ann" else ("hub", "servers")
    assert doors.at(right, path).json()["who"] == who
    sent = doors.at(wrong, path)
    assert sent.status_code == 307 and sent.headers["Location"].startswith(
        doors.address(right) + "/"
    ), sent.text


@pytest.mark.parametrize("door", ["hub", "servers"])
def test_a_page_of_another_origin_brings_no_cookies(doors, door):
    path, other = ("/hub/home", "servers") if door == "hub" else ("/user/ann/x", "hub")
    for origin in (doors.address(other), "null", "http://elsewhere.example"):
        assert (
            "cookie" not in doors.at(door, path, Cookie="key=1", Origin=origin).json()["headers"]
        ), origin
    assert (
        doors.at(door, path, Cookie="key=1", Origin=doors.address(door)).json()["headers"]["cookie"]
        == "key=1"
    )
    assert doors.at(door, path, Cookie="key=1").json()["headers"]["cookie"] == "key=1", (
        "who follows a link"
    )


SAID = {
    "X_Forwarded_For": "203.0.113.7",
    "X_Real_IP": "203.0.113.8",
    "X_Forwarded_Proto": "https",
    "X_Scheme": "https",
    "Forwarded": "for=203.0.113.9",
}


def test_a_request_says_nothing_of_its_way(doors, start_doors):
    heard = doors.at("hub", "/hub/login", **SAID).json()["headers"]
    assert (
        heard["x-forwarded-for"] == "127.0.0.1"
        and heard["x-forwarded-proto"] == "http"
        and not {"x-real-ip", "x-scheme", "forwarded"} & set(heard)
    )
    behind = start_doors("127.0.0.1").at("hub", "/hub/login", **SAID).json()["headers"]
    assert (
        behind["x-forwarded-for"].replace(" ", "") == "203.0.113.7,127.0.0.1"
        and "x-real-ip" not in behind
    ), "from a proxy of ours in front"


def test_a_browser_that_leaves_in_the_middle_of_a_word_harms_nobody_else(doors):
    ask = (
        f"GET /user/ann/ws HTTP/1.1\r\nHost: 127.0.0.1:{doors.ports['servers']}\r\nUpgrade: "
        "websocket\r\nConnection: Upgrade\r\n\r\n"
    )
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", doors.ports["servers"]), timeout=60) as browser:
            browser.sendall(ask.encode())
            assert browser.recv(12) == b"HTTP/1.1 101"
            browser.shutdown(socket.SHUT_WR)
            time.sleep(0.01)
    assert doors.at("servers", "/user/ann/").json()["who"] == "ann" and doors.process.poll() is None

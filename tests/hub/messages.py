"""What people send to a running hub in the tests of its services.

That is a browser's requests, and messages of the hackathon from an attendee's user number.
"""

import json
import os
import socket
from contextlib import suppress

import requests

import refused
from manyhands.hub.folder import BOARD, sockets

SOON_S = 15  # a page that takes longer is not answered; on an idle machine it takes 0.02 s


def cookies_at(visitor, path):
    """{name: value} of the cookies that this visitor's browser sends there."""
    return {
        cookie.name: cookie.value
        for cookie in visitor.session.cookies
        if path.startswith(cookie.path)
    }


def send(hub, service, request, own, foreign):
    """The status of an answer, 0 for none; the cookies that it sets go into `own`."""
    headers, body = refused.headers_and_body(request, own, foreign)
    try:
        with requests.request(
            request[0],
            f"{hub.address}services/{service}/{request[1]}",
            headers=headers,
            data=body,
            allow_redirects=False,
            timeout=SOON_S,
            stream=True,
        ) as answer:
            own.update(answer.cookies)
            return answer.status_code
    except requests.RequestException:
        return 0


def from_sandbox(hub, name, work):
    """Run `work` in a process with the person's user number.

    Gives what waits for its end and returns what it returned.
    """
    uid, (ours, theirs) = hub.accounts.get(name).uid, os.pipe()
    if process := os.fork():
        os.close(theirs)

        def result():
            answer = json.loads(os.fdopen(ours, "rb").read() or b"null")
            os.waitpid(process, 0)
            return answer

        return result
    try:
        os.setgid(uid), os.setuid(uid)
        os.write(theirs, json.dumps(work()).encode())
    finally:
        os._exit(0)


def ask(hub, *values, timeout_s=60):
    """The answer of the board to a message of the hackathon.

    None where it cuts the connection off.
    """
    with suppress(OSError, ValueError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout_s)
        connection.connect(str(sockets(hub.folder) / BOARD))
        connection.sendall(json.dumps({"hack": values[0], "values": values[1:]}).encode() + b"\n")
        return json.loads(connection.makefile("rb").readline())

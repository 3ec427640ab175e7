"""The socket on which ranks report: what a stranger sends there changes nothing."""

import time

import zmq

from manyhands.cluster.faults.watch import Reports


def test_what_a_stranger_sends_does_not_end_the_reports():
    reports = Reports("127.0.0.1")
    socket = zmq.Context.instance().socket(zmq.PUSH)
    socket.linger = 0
    socket.connect(reports.url)
    stand = {"rank": 3, "cell": 1, "blocked": False, "key": "", "call": None, "lines": []}
    try:
        for sent in ([], ["token"], "token", 5, None, {}, {"token": "guessed", **stand}):
            socket.send_json(sent)
        socket.send_json({"token": reports.token, **stand})
        deadline = time.monotonic() + 5
        while not reports.newest and time.monotonic() < deadline:
            time.sleep(0.01)
        assert reports.newest == {3: stand}
    finally:
        socket.close()
        reports.close()

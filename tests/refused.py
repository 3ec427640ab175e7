"""Requests of a browser that a page of ours refuses, and pairs of them.

They cover all that a foreign page, an old form or a hand-written request may send.
"""

import random
from itertools import product

METHODS = ("POST", "GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS")
FOREIGN = "http://evil.example"
# what the form's `_xsrf` holds; foreign is the one of a different person
FIELDS = ("wrong", "none", "foreign")
FETCHES = (  # what a browser says of the request itself
    {},
    {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Mode": "websocket"},
)
ORIGINS = ({"Origin": FOREIGN}, {}, {"Origin": "null"})
COOKIES = ("own", "without _xsrf", "none", "only _xsrf", "garbled")
BOARD = (
    "announcement",
    "",
    "events",
    "results.csv?unit=06_ddp",
    "predictions",
    "predictions/events",
    "hackathon/board.html",
    "oauth_callback",
    "oauth_callback?code=x&state=eA",
    "board.css",
    "nothing",
)
FORMGRADER = (
    "formgrader/manage_assignments",
    "formgrader/api/assignments",
    "formgrader/api/assignment/90_tiny/assign",
    "oauth_callback",
    "oauth_callback?code=x&state=eA",
    "logout",
    "static/favicon.ico",
    "nothing",
    "api/status",
    "",
)


def kinds(paths):
    """[(method, path, headers, the form's field, which cookies)]: all combinations."""
    return [
        (method, path, {**fetch, **origin}, field, cookies)
        for path, method, fetch, origin, field, cookies in product(
            paths, METHODS, FETCHES, ORIGINS, FIELDS, COOKIES
        )
    ]


def pairs(paths, count, seed=33):
    """Pairs of such requests.

    First the plain forms of each path, with all fields and cookies and first with a foreign origin,
    then without; the others are drawn, the same ones each time.
    """
    plain = [
        tuple(("POST", path, origin, field, cookies) for origin in ORIGINS[:2])
        for cookies, path, field in product(COOKIES, paths, FIELDS)
    ]
    drawn, every = random.Random(seed), kinds(paths)
    return plain[:count] + [tuple(drawn.sample(every, 2)) for _ in range(count - len(plain))]


def cookies_of(kind, own):
    """The cookies that go along, from {name: value} of a browser that is logged in."""
    if kind == "garbled":
        return {name: value[:-3] + "AAA" for name, value in own.items()}
    left = {
        "own": lambda name: True,
        "without _xsrf": lambda name: name != "_xsrf",
        "none": lambda name: False,
        "only _xsrf": lambda name: name == "_xsrf",
    }
    return {name: value for name, value in own.items() if left[kind](name)}


def headers_and_body(request, own, foreign_field):
    """The headers and the body of a request that `kinds` has named."""
    method, _, headers, field, cookies = request
    cookie = "; ".join(f"{name}={value}" for name, value in cookies_of(cookies, own).items())
    fields = {"none": "", "wrong": "_xsrf=1&", "foreign": f"_xsrf={foreign_field}&"}[field]
    body = f"{fields}text=forged" if method in ("POST", "PUT", "PATCH") else None
    form = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
    return headers | form | ({"Cookie": cookie} if cookie else {}), body

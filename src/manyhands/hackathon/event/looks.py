"""What a person who has looked at an entry signs: who it was, and whether the entry counts.

A judging may raise flags (`honesty.py`). An entry with a flag does not count on the board until a person has read it
and has said so with `manyhands hack look`. No record and no board claims a look that no person has signed.
"""

import hashlib
import json
from collections import namedtuple

SUFFIX = ".look"
Look = namedtuple("Look", "by counts at")


def text(record, by, counts, at):
    """The bytes to sign, about the text of a signed record."""
    return json.dumps({"record": _digest(record), "by": by, "counts": counts, "at": at}).encode() + b"\n"


def read(signed, record):
    """The `Look` of what was signed; None where there is none, or where it is about a different record."""
    try:
        said = json.loads(signed.split("\n", 1)[0])
        if said["record"] == _digest(record):
            return Look(str(said["by"]), said["counts"] is True, float(said["at"]))
    except (ValueError, TypeError, KeyError):
        pass
    return None


def beside(path, public):
    """What lies beside the file of a record, signed with the record's key; "" if nothing does."""
    from manyhands.learner import signing

    try:
        data = path.with_suffix(SUFFIX).read_bytes()
        if signing.verified(data)[1] == public:
            return data.decode()
    except (OSError, ValueError):  # also of a signature, and of bytes that are no text
        pass
    return ""


def _digest(record):
    return hashlib.sha256(record.encode()).hexdigest()

"""Signatures under files, by Ed25519.

Sources: Bernstein et al. 2012, *High-speed high-security signatures*; RFC 8032.

A signed file ends with a line of its own, a comment of PDF: the public key, and the signature of
all bytes before it.
"""

from __future__ import annotations

import hashlib
import os
from base64 import b64decode, b64encode
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MARK = b"%manyhands-signature "


class BadKeyError(ValueError):
    """This file is no key of the kind that is needed; the message says which and what to do."""


class BadSignatureError(ValueError):
    """The bytes are not those that were signed, or nobody has signed them.

    The message says which.
    """


def new_key(path: str | Path) -> tuple[Path, Path]:
    """Make a private key in `path`, and the public one beside it in `<path>.pub`.

    The private one is for its owner's eyes alone. Raises FileExistsError where there is a file
    already.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key, path = Ed25519PrivateKey.generate(), Path(path)
    if path.is_dir():
        raise IsADirectoryError(21, "this is a folder; name a new file in it", str(path))
    public = path.with_name(path.name + ".pub")
    if public.exists():
        raise FileExistsError(17, "the file already exists", str(public))
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for place, content, mode in (
        (path, private, 0o600),
        (public, b64encode(_raw(key)) + b"\n", 0o644),
    ):
        with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
    return path, public


def _raw(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def load_key(path: str | Path) -> Ed25519PrivateKey:
    """The private key in a file that `new_key` made; raises BadKeyError or OSError."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(Path(path).read_bytes(), None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadKeyError(f"{path} is not a private key made by `manyhands certificate --new-key`.")
    return key


def load_public(path: str | Path) -> bytes:
    """The bytes of the public key in a file that `new_key` made."""
    try:
        public = b64decode(Path(path).read_bytes().strip(), validate=True)
    except ValueError:
        public = b""
    if len(public) != 32:
        raise BadKeyError(
            f"{path} is not a public key. The public key is the file whose name ends with .pub."
        )
    return public


def fingerprint(public: bytes) -> str:
    """Letters by which people compare a public key: `3f2a 91c0 ...`, 64 bits of its SHA-256."""
    digest = hashlib.sha256(public).hexdigest()[:16]
    return " ".join(digest[place : place + 4] for place in range(0, 16, 4))


def signed(data: bytes, key: Ed25519PrivateKey) -> bytes:
    """The bytes with the line of the signature behind them."""
    return data + MARK + b64encode(_raw(key)) + b" " + b64encode(key.sign(data)) + b"\n"


def verified(data: bytes) -> tuple[bytes, bytes]:
    """(the bytes that were signed, the public key) of a signed file.

    Raises BadSignatureError where they do not belong together.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    start = data.rfind(b"\n" + MARK) + 1
    if not start:
        raise BadSignatureError("is not signed, so anyone could have written it")
    before, line = data[:start], data[start:]
    try:
        public, signature = (
            b64decode(part, validate=True) for part in line[len(MARK) : -1].split(b" ")
        )
        # nothing behind it either
        if line != MARK + b64encode(public) + b" " + b64encode(signature) + b"\n":
            raise ValueError
        Ed25519PublicKey.from_public_bytes(public).verify(signature, before)
    except (ValueError, InvalidSignature):
        raise BadSignatureError("was changed after it was signed, or is not complete") from None
    return before, public

"""Passwords that can be read aloud and typed from paper.

They have three words of three syllables, 54 bits, and are kept as scrypt only.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import unicodedata

# no l, j, g, q, c, v: too like others, on paper or by ear
CONSONANTS, VOWELS = "bdfhkmnprstwz", "aeiou"
WORDS, SYLLABLES = 3, 3  # (13 * 5) ** 9 > 2 ** 54
COST = {"n": 2**14, "r": 8, "p": 1}


def new_password() -> str:
    """For example `bakori-nutefo-samihe`."""
    return "-".join(
        "".join(secrets.choice(CONSONANTS) + secrets.choice(VOWELS) for _ in range(SYLLABLES))
        for _ in range(WORDS)
    )


def scrypt(password: str, salt: str) -> str:
    """The key of a password, as hex.

    Capitals, spaces, hyphens and full-width letters make no difference.
    """
    letters = "".join(filter(str.isalnum, unicodedata.normalize("NFKC", password).lower()))
    return hashlib.scrypt(letters.encode(), salt=bytes.fromhex(salt), **COST).hex()


def new_key(password: str) -> tuple[str, str]:
    """(salt, key), both as hex."""
    salt = secrets.token_hex(16)
    return salt, scrypt(password, salt)


def matches(password: str, salt: str, key: str) -> bool:
    """Whether it is the password; takes as long for a wrong one as for the right one."""
    return hmac.compare_digest(scrypt(password, salt), key)

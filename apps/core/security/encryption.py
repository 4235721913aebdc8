"""Encrypts keys of other servers before they are stored, with a key derived from SECRET_KEY.

Fernet (https://github.com/fernet/spec) encrypts and authenticates. A text that was encrypted with
another SECRET_KEY cannot be decrypted: the caller asks for it again.
"""

from base64 import urlsafe_b64encode
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

# Separates this use of SECRET_KEY from others (RFC 5869, section 3.2).
PURPOSE = b"codeinfo: keys of providers"


def encrypt(text: str) -> str:
    """Encrypt a text. "" stays "", which means that there is none."""
    return _fernet(settings.SECRET_KEY).encrypt(text.encode()).decode() if text else ""


def decrypt(stored: str) -> str | None:
    """Return the text of `encrypt`; None if it was encrypted with another SECRET_KEY."""
    if not stored:
        return ""
    try:
        return _fernet(settings.SECRET_KEY).decrypt(stored.encode()).decode()
    except (InvalidToken, ValueError):
        return None


@lru_cache(maxsize=4)
def _fernet(secret: str) -> Fernet:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=PURPOSE).derive(secret.encode())
    return Fernet(urlsafe_b64encode(derived))

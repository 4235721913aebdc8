"""The servers saved on pages."""

from django.db import models


class SavedServer(models.Model):
    """The server of its kind, if the environment sets none.

    kind: `Kind.id`.
    address: canonical, without user name and password.
    key: encrypted (`core.security.encryption`); "" for none. It is sent to this address only.
    """

    kind = models.CharField(max_length=20, primary_key=True)
    address = models.CharField(max_length=300)
    key = models.TextField(blank=True, default="", editable=False)
    saved_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.address

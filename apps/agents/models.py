"""The server saved on the Providers page."""

from django.db import models


class SavedServer(models.Model):
    """The OpenAI-compatible server, if the environment sets none. At most one row.

    base_url: canonical, without user name and password.
    api_key: encrypted (`core.security.encryption`); "" for none.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    base_url = models.CharField(max_length=300)
    api_key = models.TextField(blank=True, default="", editable=False)
    saved_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.base_url

"""The address and the token saved on a page."""

from django.db import models


class SavedAddress(models.Model):
    """Overrides the default of LMSTUDIO_BASE_URL. At most one row.

    token: encrypted (`core.security.encryption`); "" for none. It is sent to this address only.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    base_url = models.CharField(max_length=300)
    token = models.TextField(blank=True, default="", editable=False)
    saved_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.base_url

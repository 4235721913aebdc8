"""The address saved on the LM Studio page."""

from django.db import models


class SavedAddress(models.Model):
    """Overrides LMSTUDIO_BASE_URL. At most one row."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    base_url = models.CharField(max_length=300)
    saved_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.base_url

"""The address that was saved on the LM Studio page."""

from django.db import models


class SavedAddress(models.Model):
    """Comes before LMSTUDIO_BASE_URL. One row, or none."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    base_url = models.CharField(max_length=300)
    saved_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.base_url

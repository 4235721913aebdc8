"""Hide this installation's secrets on Django's debug pages."""

from typing import Any

from django.views.debug import SafeExceptionReporterFilter

from apps.logs.redaction import redacted


class SecretFilter(SafeExceptionReporterFilter):
    """Django's filter hides settings by name; this one also redacts passwords inside URLs."""

    def cleanse_setting(self, key: int | str, value: Any) -> Any:
        cleansed = super().cleanse_setting(key, value)
        return redacted(cleansed) if isinstance(cleansed, str) else cleansed

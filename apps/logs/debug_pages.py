"""What Django's debug pages show of the settings: nothing that is a secret of this installation."""

from typing import Any

from django.views.debug import SafeExceptionReporterFilter

from apps.logs.redaction import redacted


class SecretFilter(SafeExceptionReporterFilter):
    """Django's own hides settings by their names; passwords also stand inside addresses."""

    def cleanse_setting(self, key: int | str, value: Any) -> Any:
        cleansed = super().cleanse_setting(key, value)
        return redacted(cleansed) if isinstance(cleansed, str) else cleansed

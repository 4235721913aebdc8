"""The form "New repository"."""

import os
from pathlib import PurePosixPath

from django import forms

from apps.core.errors import CodeinfoError
from apps.index import queries
from apps.index.models import IngestRun
from apps.ingest import folders, refs, services

# The field of each error code of `services.start_run`. Other errors are shown above the button.
FIELD_OF_CODE = {
    "NOT_FOUND": "path",
    "NOT_DIRECTORY": "path",
    "NOT_READABLE": "path",
    "OUTSIDE_BASE": "path",
    "OWN_DATA": "path",
    "URL_REFUSED": "path",
    "NAME_TAKEN": "name",
    "MODEL_LOCKED": "model",
    "EMBED_MODEL_MISSING": "model",
}


class StartForm(forms.Form):
    """outside: the folder that was refused, as it is beneath no base."""

    outside = ""
    path = forms.CharField(error_messages={"required": "Path is required"})
    name = forms.CharField(max_length=255, required=False)
    description = forms.CharField(required=False)
    model = forms.CharField(required=False)
    dry_run = forms.BooleanField(required=False)

    def clean_path(self) -> str:
        """The path, with the home folder of the server's user for `~`."""
        path = str(self.cleaned_data["path"])
        return os.path.expanduser(path) if path.startswith("~") else path

    def clean(self) -> None:
        """Without a name, the repository takes the folder's; one that is fetched gets its own."""
        folder = self.cleaned_data.get("path", "")
        is_fetched = refs.is_fetched(folder)
        name = self.cleaned_data.get("name") or ("" if is_fetched else PurePosixPath(folder).name)
        if folder and not is_fetched and not name and "name" not in self.errors:
            self.add_error("name", "Name is required")
        self.cleaned_data["name"] = name

    def clean_model(self) -> str:
        # Browsers do not send a disabled select.
        model = self.cleaned_data["model"] or queries.locked_model()
        if not model:
            raise forms.ValidationError("Select a model")
        return str(model)

    @property
    def path_hint(self) -> str:
        """Which folders may be ingested; "" if the error of the path names them."""
        allowed = folders.allowed_text()
        named = any(allowed in error for error in self["path"].errors)
        return "" if named else f"A folder beneath {allowed}, or the URL of a git repository"

    def start(self) -> IngestRun | None:
        """Queue the run of a valid form. If it is refused, add the error and return None."""
        values = self.cleaned_data
        try:
            return services.start_run(**values)
        except CodeinfoError as error:
            self.outside = values["path"] if error.code == "OUTSIDE_BASE" else ""
            self.add_error(FIELD_OF_CODE.get(error.code), error.message)
            return None

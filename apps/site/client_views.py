"""The list of MCP clients on the Connect page: their last calls, and buttons that install codeinfo.

A button changes files of the user who runs codeinfo. It is offered only to staff whose browser is
on this machine, if other users of the machine cannot be it. The change is shown before it is made.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_http_methods

from apps.core.config import config
from apps.core.errors import InvalidInput, NotFound
from apps.core.principal import current
from apps.core.security.local_users import is_on_this_machine
from apps.mcp.client_calls import LastCall, last_calls
from codeinfo_cli.clients import installing
from codeinfo_cli.clients.client import Client, this_machine
from codeinfo_cli.clients.exposed import is_exposed
from codeinfo_cli.clients.files import Change, Refused
from codeinfo_cli.clients.launch import this_installation
from codeinfo_cli.clients.table import CLIENTS, client_named

MAX_OTHERS = 20


@dataclass(frozen=True)
class ListedClient:
    """A client of the table that is on this machine or has called.

    state: "installed"; "exposed" if its entry runs code of the folder that the client has open;
        "absent"; "unknown" if its file cannot be read; "" if it is elsewhere.
    """

    client: Client
    state: str = ""
    problem: str = ""
    last: LastCall | None = None


@require_GET
def clients(request: HttpRequest) -> HttpResponse:
    """Fragment: the list of clients."""
    return _rendered(request)


@require_http_methods(["GET", "POST"])
def client_change(request: HttpRequest, client_id: str) -> HttpResponse:
    """Fragment: the list of clients with a change of one. POST makes the change that GET showed.

    action: install or uninstall
    digest: of the change that was shown; if the files are others by now, the change is shown again.
    """
    client = client_named(client_id)
    if client is None:
        raise NotFound("This client is not known.")
    if not is_on_this_machine(request):
        text = "Clients are set up only from a browser on the machine that runs codeinfo."
        raise InvalidInput(text, code="FORBIDDEN")
    parameters = request.POST if request.method == "POST" else request.GET
    removes = parameters.get("action") == "uninstall"
    data, machine = config().data_dir, this_machine()
    shown: dict[str, Any] = {"chosen": client, "action": "uninstall" if removes else "install"}
    try:
        if removes:
            changes = installing.plan_uninstall(client, machine, data)
        else:
            changes = installing.plan_install(client, machine, this_installation(data))
        digest = _digest(changes)
        shown |= {"changes": [_diff(change) for change in changes], "digest": digest}
        if request.method == "POST" and changes:
            if parameters.get("digest") != digest:
                return _rendered(request, **shown, again=True)
            installing.make(changes, client, data, removes=removes)
            return _rendered(request, done=client, action=shown["action"])
    except Refused as refusal:
        shown["refusal"] = str(refusal)
    return _rendered(request, **shown)


def _digest(changes: Sequence[Change]) -> str:
    digest = hashlib.sha256()
    for change in changes:
        for part in (str(change.target).encode(), change.before, change.after):
            digest.update(b"-" if part is None else b"%d:" % len(part) + part)
    return digest.hexdigest()


def _diff(change: Change) -> dict[str, Any]:
    kinds = {"+": "add", "-": "del", "@": "at"}
    lines = [(kinds.get(line[:1], ""), line) for line in change.diff.splitlines()[2:]]
    return {"path": str(change.path), "lines": lines}


def _rendered(request: HttpRequest, **shown: Any) -> HttpResponse:
    local = is_on_this_machine(request)
    calls = last_calls() if current().is_staff else []
    rows = [row for client in CLIENTS if (row := _row(client, local, calls))]
    known = {id(row.last) for row in rows}
    others = [call for call in calls if id(call) not in known][:MAX_OTHERS]
    context = {"rows": rows, "others": others, "local": local, "loaded": True, **shown}
    return render(request, "site/_clients.html", context)


def _client_of(call: LastCall) -> Client | None:
    """The client whose name is the longest beginning of the name that the caller gives."""
    name = call.name.lower()
    known = [
        (len(one), client)
        for client in CLIENTS
        for one in client.known_as or (client.id,)
        if name.startswith(one)
    ]
    return max(known, key=lambda pair: pair[0], default=(0, None))[1]


def _row(client: Client, local: bool, calls: Sequence[LastCall]) -> ListedClient | None:
    last = next((one for one in calls if _client_of(one) is client), None)
    machine = this_machine()
    if not local or not client.is_on(machine):
        return ListedClient(client, last=last) if last else None
    try:
        entry = installing.entry_of(client, machine)
    except Refused as refusal:
        return ListedClient(client, "unknown", str(refusal), last)
    state = "absent" if entry is None else "exposed" if is_exposed(entry) else "installed"
    return ListedClient(client, state, last=last)

"""A request of a client, and what it is answered."""

import json
from typing import Any

from django.test import Client


def post(client: Client, address: str, body: Any = None) -> tuple[int, dict[str, Any]]:
    raw = "" if body is None else json.dumps(body)
    answer = client.post(address, raw, content_type="application/json")
    return answer.status_code, answer.json()

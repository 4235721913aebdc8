"""`/lmstudio/status`: the models, and the errors when LM Studio cannot be used."""

import socket
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.servers import services
from apps.servers.kinds import LMSTUDIO
from tests.ports import free_ports
from tests.stand_ins.lmstudio_server import EMBEDDER, LMStudioStandIn, embedder, llm
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.support.entries import Entries

pytestmark = [pytest.mark.django_db, pytest.mark.door]
TOKEN = "sk-lm-abcd1234:ABCDEFGHIJ0123456789"


def ask(client: Client, headers: dict[str, str] | None = None, **query: str) -> Any:
    """Query the current address with GET, any other with POST."""
    if not query:
        return client.get("/lmstudio/status", headers=headers)
    return client.post("/lmstudio/status", query, content_type="application/json", headers=headers)


def status(client: Client, code: int, **query: str) -> dict[str, Any]:
    response = ask(client, **query)
    assert response.status_code == code, response.content.decode()
    body: dict[str, Any] = response.json()
    return body


def refusal(client: Client, code: int, **query: str) -> str:
    body = status(client, code, **query)
    assert set(body) == {"status", "baseUrl", "error"}
    assert body["status"] == "error"
    return str(body["error"])


def test_every_downloaded_model_is_listed(client: Client, server: LMStudioStandIn) -> None:
    body = status(client, 200)
    assert (body["status"], body["baseUrl"]) == ("ok", server.url)
    by_key = {model["modelKey"]: model for model in body["models"]}
    assert list(by_key) == [model["modelKey"] for model in server.models]
    assert by_key["tool"] == llm("tool")
    nothing = dict.fromkeys(("architecture", "paramsString", "vision", "trainedForToolUse"))
    assert by_key[EMBEDDER] == embedder(EMBEDDER) | nothing


def test_one_unknown_model_never_hides_the_others(client: Client, server: LMStudioStandIn) -> None:
    strange = {"type": "hologram", "modelKey": "strange", "format": "pte", "sizeBytes": "big"}
    server.models = [strange, {"type": "llm"}, "what", None, llm("plain")]  # type: ignore[list-item]
    first, second = status(client, 200)["models"]
    assert (first["modelKey"], first["type"], first["format"]) == ("strange", "hologram", "pte")
    assert first["displayName"] == "strange"
    assert first["sizeBytes"] is None
    assert second == llm("plain")


def test_a_list_may_be_longer_than_a_frame(client: Client, server: LMStudioStandIn) -> None:
    server.models = [llm(f"model-{number}") for number in range(1000)]
    assert len(status(client, 200)["models"]) == 1000


def test_only_one_socket_is_opened(client: Client, server: LMStudioStandIn) -> None:
    status(client, 200)
    assert server.opened == ["/system"]


def test_a_requested_address_precedes_the_saved_one(
    client: Client, server: LMStudioStandIn, configure: Callable[..., None]
) -> None:
    services.save(LMSTUDIO, server.url)
    configure(lmstudio_base_url="http://127.0.0.1:9")
    assert status(client, 200)["baseUrl"] == server.url
    with LMStudioStandIn() as other:
        other.models = []
        body = status(client, 200, baseUrl=f"ws://localhost:{other.port}/v1")
        assert body == {"status": "ok", "baseUrl": f"http://localhost:{other.port}", "models": []}


@pytest.mark.parametrize(
    "text", ["ftp://h", "localhost:1234", "http://169.254.169.254", "http://u:p@h"]
)
def test_an_invalid_address_is_400(client: Client, text: str) -> None:
    body = status(client, 400, baseUrl=text)
    assert body == {"status": "error", "baseUrl": text, "error": "Invalid baseUrl"}


@pytest.mark.fault("An address that leads elsewhere")
@pytest.mark.parametrize(
    "headers", [{"REMOTE_ADDR": "192.168.1.9"}, {"HTTP_X_FORWARDED_FOR": "192.168.1.9"}]
)
def test_an_anonymous_remote_client_may_not_choose_an_address(
    client: Client,
    server: LMStudioStandIn,
    headers: dict[str, str],
    configure: Callable[..., None],
) -> None:
    assert client.post(**asking("http://192.168.1.1"), **headers).status_code == 403
    assert client.post(**asking(server.url), **headers).status_code == 200
    configure(api_token="secret")
    headers |= {"HTTP_AUTHORIZATION": "Bearer secret"}
    other_name = server.url.replace("127.0.0.1", "localhost")
    assert client.post(**asking(other_name), **headers).status_code == 200


def asking(url: str) -> dict[str, Any]:
    body = {"baseUrl": url}
    return {"path": "/lmstudio/status", "data": body, "content_type": "application/json"}


@pytest.mark.fault("An address that leads elsewhere")
@pytest.mark.parametrize(
    "headers", [{}, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "image"}]
)
def test_a_foreign_page_cannot_obtain_the_token(
    client: Client, headers: dict[str, str], configure: Callable[..., None]
) -> None:
    """Even without a script, any website may put our address into an <img>."""
    configure(lmstudio_api_token=TOKEN)
    with LMStudioStandIn() as attacker:
        answer = client.get("/lmstudio/status", {"baseUrl": attacker.url}, headers=headers)
        assert answer.status_code in (400, 403)
        assert (attacker.requests, attacker.opened) == ([], [])


@pytest.mark.fault("An address that leads elsewhere")
def test_the_token_is_sent_only_to_the_current_address(
    client: Client, server: LMStudioStandIn, configure: Callable[..., None]
) -> None:
    configure(lmstudio_api_token=TOKEN)
    with LMStudioStandIn(token=TOKEN) as other:
        refused = client.post(**asking(other.url))
        assert (refused.status_code, "asks for an API token" in refused.json()["error"]) == (
            502,
            True,
        )
        assert other.handshakes and TOKEN not in other.handshakes
    assert client.get("/lmstudio/status").status_code == 200
    assert server.handshakes == [TOKEN]


def test_a_server_that_is_not_running(client: Client) -> None:
    url = f"http://127.0.0.1:{free_ports(1)}"
    assert refusal(client, 502, baseUrl=url) == (
        f"Nothing answers at {url}: start LM Studio's server, or change the address on the "
        "LM Studio page."
    )


def test_a_list_and_a_failure_are_one_entry_each_with_origin_and_time(
    client: Client, server: LMStudioStandIn
) -> None:
    closed = f"http://127.0.0.1:{free_ports(1)}"
    with Entries() as entries:
        ask(client)
        ask(client, baseUrl=closed)
        client.post("/ui/lmstudio/check", {"baseUrl": server.url})
    facts = [e["context"] for e in entries.all if e["message"] == "LM Studio models"]
    assert all(each.pop("ms") >= 0 for each in facts)
    listed = {"baseUrl": server.url, "count": len(server.models)}
    assert facts == [listed, {"baseUrl": closed, "code": "LMSTUDIO_UNAVAILABLE"}, listed]


def test_a_server_that_is_away_is_no_error_of_this_one(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    status(client, 502, baseUrl=f"http://127.0.0.1:{free_ports(1)}")
    assert client.get("/chat/models?provider=lmstudio").status_code == 503
    assert [r.getMessage() for r in caplog.records if r.levelname == "ERROR"] == []


def test_a_name_that_does_not_resolve(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*name: Any, **more: Any) -> None:
        raise socket.gaierror("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    assert "There is no server of the name nobody.invalid" in refusal(
        client, 502, baseUrl="http://nobody.invalid:1234"
    )


def test_a_silent_server(client: Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert f"{url} does not answer in time" in refusal(client, 502, baseUrl=url)


def test_another_service(client: Client, server: LMStudioStandIn) -> None:
    with OpenAIStandIn() as other:
        url = other.url.removesuffix("/v1")
        assert "Something else than LM Studio answers" in refusal(client, 502, baseUrl=url)
    server.greets = False
    assert "Something else than LM Studio answers" in refusal(client, 502)


@pytest.mark.fault("An address that leads elsewhere")
def test_a_redirect_is_not_followed(client: Client, server: LMStudioStandIn) -> None:
    with LMStudioStandIn() as other:
        server.redirects_to = f"{other.url}/lmstudio-greeting"
        assert "Something else than LM Studio answers" in refusal(client, 502)
        assert other.requests == []


def test_an_https_address_is_refused_with_the_reason(client: Client) -> None:
    assert "speaks no TLS" in refusal(client, 502, baseUrl="https://127.0.0.1:1234")


def test_a_server_that_requires_a_token(
    client: Client, server: LMStudioStandIn, configure: Callable[..., None]
) -> None:
    server.token = TOKEN
    assert "enter it on the LM Studio page" in refusal(client, 502)
    configure(lmstudio_api_token=TOKEN.replace("abcd", "dcba"))
    assert refusal(client, 502) == (
        "LM Studio refused the API token: check CODEINFO_LMSTUDIO_API_TOKEN."
    )
    configure(lmstudio_api_token=TOKEN)
    assert status(client, 200)["models"]


@pytest.mark.parametrize("answer", ["null", '"models"', '{"models": 1}'])
def test_a_list_of_the_wrong_type_has_no_models(
    client: Client, server: LMStudioStandIn, answer: str
) -> None:
    server.listing = f'{{"type": "rpcResult", "callId": 1, "result": {answer}}}'
    assert status(client, 200)["models"] == []


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        ("{", "The connection to LM Studio at"),
        ("[]", "The connection to LM Studio at"),
        ('{"type": "rpcWhat", "callId": 1}', "sent something that this version"),
        ('{"type": "rpcError", "callId": 1, "error": {"title": "Out of disk"}}', "Out of disk"),
    ],
)
def test_a_malformed_frame(client: Client, server: LMStudioStandIn, frame: str, error: str) -> None:
    server.listing = frame
    assert error in refusal(client, 502)

"""What is told of the steps: one trace from the request to the last token, and figures."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from django.test import AsyncClient, Client
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from apps.core.config import Config
from apps.core.monitoring import telemetry
from tests.browser.product import HOME, running
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.stand_ins.otlp_receiver import Receiver, receiving
from tests.support.ingested import SAMPLE, write_files
from tests.support.served import ingest_into, until_followed
from tests.support.waiting import PATIENCE

CANARY = "canary-4711"
TRACE, ABOVE = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """All that a product sent of an ingest and a chat turn, which has ended since.

    The canary is the key, the caller's query, in the question, the files and their names.
    """
    folder = tmp_path_factory.mktemp("traced")
    with receiving() as receiver, OpenAIStandIn() as model:
        more = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
            "CODEINFO_OPENAI_BASE_URL": model.url,
            "CODEINFO_OPENAI_API_KEY": CANARY,
            # Each search asks Chroma
            "CODEINFO_RETRIEVAL_MODE": "vector",
            "CODEINFO_CHROMA": "follow",
        }
        with running(folder, **more) as product:
            files = SAMPLE | {f"src/{CANARY}.py": f"KEY = '{CANARY}'\n"}
            repo = write_files(product.repos / CANARY, files)
            ingest_into(product, repo)
            until_followed(product)
            question = {
                "provider": "openai",
                "model": "tool",
                "conversationId": CANARY,
                "message": f"How long is the {CANARY} of a retry?",
            }
            headers = {
                "Accept": "text/event-stream",
                "X-Request-Id": CANARY,
                "traceparent": f"00-{TRACE}-{ABOVE}-01",
            }
            response = httpx.post(
                f"{product.url}/chat?q={CANARY}", json=question, headers=headers, timeout=60
            )
            assert '"type":"final"' in response.text.replace(" ", ""), response.text
            httpx.get(f"{product.url}/{CANARY}", timeout=PATIENCE)
        # The last spans are sent while the process ends.
        yield receiver


def facts(span: Span) -> dict[str, Any]:
    return {
        fact.key: getattr(fact.value, str(fact.value.WhichOneof("value")))
        for fact in span.attributes
    }


@pytest.mark.door
def test_one_trace_leads_from_the_request_to_the_call_of_chroma(traced: Receiver) -> None:
    trace = bytes.fromhex(TRACE)
    [turn] = traced.named("chat turn")
    request = traced.above(turn)
    assert request is not None and request.name == "request"
    assert facts(request)["http.route"] == "/chat"
    assert request.parent_span_id == bytes.fromhex(ABOVE)
    rounds = traced.named("model round")
    assert len(rounds) == 2
    [tool] = traced.named("tool")
    assert all(traced.above(one) == turn for one in (*rounds, tool))
    assert facts(tool)["tool"] == "VectorSearch"
    [search] = [one for one in traced.named("search") if traced.above(one) == tool]
    assert facts(search)["results"] >= 1
    chroma_spans = [one for one in traced.named("chroma") if traced.above(one) == search]
    assert chroma_spans and "verb" in facts(chroma_spans[0])
    assert any(traced.above(one) == search for one in traced.named("embed question"))
    chain = [request, turn, *rounds, tool, search, *chroma_spans]
    assert {one.trace_id for one in chain} == {trace}


@pytest.mark.door
def test_the_span_of_a_turn_outlasts_the_request_and_has_its_costs(traced: Receiver) -> None:
    [turn] = traced.named("chat turn")
    turn_facts = facts(turn)
    assert (turn_facts["provider"], turn_facts["status"]) == ("openai", "ok")
    assert turn_facts["outputTokens"] > 0
    request = traced.above(turn)
    assert request is not None
    assert turn.end_time_unix_nano > request.end_time_unix_nano


@pytest.mark.door
def test_an_ingest_has_its_stages_below_it(traced: Receiver) -> None:
    [ingest] = traced.named("ingest")
    below = {one.name for one in traced.spans if one.parent_span_id == ingest.span_id}
    assert {"ingest discovery", "ingest rows", "ingest embedding", "ingest parts"} <= below


@pytest.mark.door
def test_spans_have_no_data_of_users(traced: Receiver) -> None:
    assert traced.services == {"codeinfo"}
    assert len(traced.spans) > 20
    assert CANARY not in traced.everything
    assert "lighthouse" not in traced.everything.lower()


@pytest.fixture
def tracing(configure: Callable[..., None], settings: Any) -> Iterator[Receiver]:
    """Traces of this process; they have been sent when `telemetry.stop` returns."""
    with receiving() as receiver:
        configure(otel_traces_endpoint=f"{receiver.url}/v1/traces", otel_service_name="here")
        assert telemetry.start(settings.CONFIG)
        yield receiver
        telemetry.stop()


@pytest.mark.door
def test_a_failed_step_has_its_code_and_not_its_message(tracing: Receiver) -> None:
    with pytest.raises(KeyError), telemetry.span("step"):
        raise KeyError(CANARY)
    telemetry.stop()
    [step] = tracing.spans
    assert (step.status.code, step.status.message) == (Status.STATUS_CODE_ERROR, "KeyError")
    assert CANARY not in tracing.everything


@pytest.mark.door
async def test_the_path_of_an_unknown_route_is_not_recorded(tracing: Receiver) -> None:
    await AsyncClient().get(f"/{CANARY}")
    telemetry.stop()
    [request] = tracing.named("request")
    assert facts(request)["http.route"] == "/"
    assert CANARY not in tracing.everything


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_it_is_off_unless_the_variables_want_it(environ: dict[str, str]) -> None:
    assert not telemetry.start(Config.read(environ))


@pytest.mark.door
def test_while_it_is_off_opentelemetry_is_not_imported() -> None:
    code = (
        "import sys, django; django.setup(); import codeinfo.asgi;"
        "from apps.core.monitoring import telemetry;"
        "from apps.core.config import config; telemetry.start(config())\n"
        "with telemetry.span('step', x=1) as step: step.set(y=2)\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=HOME, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_without_opentelemetry_the_log_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    assert not telemetry.start(Config.read(environ))
    assert "requirements.txt" in caplog.text


@pytest.mark.django_db
def test_metrics_are_figures_for_prometheus(client: Client) -> None:
    client.get("/version")
    answer = client.get("/metrics")
    assert answer["Content-Type"].startswith("text/plain")
    lines = answer.content.decode().splitlines()
    expected = 'codeinfo_requests_total{method="GET",route="/version",status="200"} '
    assert [line for line in lines if line.startswith(expected)]
    assert [line for line in lines if line.startswith("codeinfo_step_seconds_bucket")]


@pytest.mark.django_db
def test_metrics_ask_for_the_apis_token(client: Client, configure: Callable[..., None]) -> None:
    configure(api_token="t0ken")
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers={"Authorization": "Bearer t0ken"}).status_code == 200

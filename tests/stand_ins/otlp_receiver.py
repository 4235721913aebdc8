"""A receiver of traces, like the OpenTelemetry collector: OTLP over HTTP, protobuf."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Receiver:
    """The received spans and services, and everything received as text."""

    url: str
    spans: list[Span] = field(default_factory=list)
    services: set[str] = field(default_factory=set)
    everything: str = ""

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def above(self, span: Span) -> Span | None:
        found = (other for other in self.spans if other.span_id == span.parent_span_id)
        return next(found, None)

    def take(self, request: ExportTraceServiceRequest) -> None:
        self.everything += str(MessageToDict(request))
        for resource in request.resource_spans:
            facts = {fact.key: fact.value.string_value for fact in resource.resource.attributes}
            self.services.add(facts["service.name"])
            for scope in resource.scope_spans:
                self.spans += scope.spans


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver on a free port until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            assert self.headers["Content-Type"] == "application/x-protobuf"
            receiver.take(ExportTraceServiceRequest.FromString(body))
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()

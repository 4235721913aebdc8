"""Servers of git repositories on loopback: HTTPS by `git http-backend`, and SSH."""

import asyncio
import os
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncssh
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"
BACKEND = ("git", "http-backend")
# A request of a client: what it gets instead of what git answers, or None.
Answer = Callable[["_Handler"], bool]


@dataclass
class GitServer:
    """A server of the repositories in a folder.

    authorities: the file with the certificate that clients must trust
    requests: path and `Authorization` of each request
    answer: answers a request in the place of git; returns whether it did
    """

    url: str
    authorities: Path
    requests: list[tuple[str, str]] = field(default_factory=list)
    answer: Answer = lambda handler: False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    _body: bytes | None = None

    def __init__(self, folder: Path, state: GitServer, *arguments: object) -> None:
        self.folder, self.state = folder, state
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self._body = None
        self.state.requests.append((self.path, self.headers.get("Authorization", "")))
        if not self.state.answer(self):
            self.send_git()

    do_POST = do_GET

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def body(self) -> bytes:
        if self._body is None:
            self._body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return self._body

    def wait_for_end(self) -> bool:
        """Send nothing until the client goes."""
        self.rfile.read(1)
        self.close_connection = True
        return True

    def send_git(self) -> None:
        parts = urlsplit(self.path)
        body = self.body()
        env = {
            "GIT_PROJECT_ROOT": str(self.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "PATH_INFO": parts.path,
            "QUERY_STRING": parts.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "PATH": os.environ["PATH"],
        }
        done = subprocess.run(BACKEND, input=body, env=env, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        lines = [line.partition(b": ") for line in head.split(b"\r\n")]
        status = next((value for name, _, value in lines if name == b"Status"), b"200")
        self.send(
            int(status.split()[0]),
            content,
            **{name.decode(): value.decode() for name, _, value in lines if name != b"Status"},
        )

    def send(self, status: int, content: bytes = b"", **headers: str) -> bool:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        return True


@contextmanager
def https_server(folder: Path, keys: Path) -> Iterator[GitServer]:
    """Serve the repositories in a folder over HTTPS.

    keys: a folder for its key and its certificate
    """
    certificate, key = _certificate(keys)
    state = GitServer("", certificate)
    server = ThreadingHTTPServer((HOST, 0), partial(_Handler, folder, state))
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    state.url = f"https://{HOST}:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _certificate(folder: Path) -> tuple[Path, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    names = [x509.IPAddress(ip_address(HOST)), x509.DNSName("localhost")]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            pem, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    return folder / "certificate.pem", folder / "key.pem"


@contextmanager
def ssh_server(folder: Path, home: Path) -> Iterator[str]:
    """Serve the repositories in a folder over SSH. Yields the start of their address.

    home: of the client; it gets a key that the server accepts, and the server's in known_hosts
    """
    client, own = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    ssh = home / ".ssh"
    ssh.mkdir(parents=True, mode=0o700)
    client.write_private_key(str(ssh / "id_ed25519"))
    (ssh / "id_ed25519").chmod(0o600)
    allowed = asyncssh.import_authorized_keys(client.export_public_key().decode())

    async def serve(process: "asyncssh.SSHServerProcess[bytes]") -> None:
        program, _, path = (process.command or "").partition(" ")
        place = folder / path.strip("'").lstrip("/")
        child = await asyncio.create_subprocess_exec(
            program, str(place), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert child.stdin is not None and child.stdout is not None
        received = asyncio.ensure_future(_pump(process.stdin, child.stdin))
        await _pump(child.stdout, process.stdout)
        received.cancel()
        process.exit(await child.wait())

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def listen() -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            HOST,
            0,
            server_host_keys=[own],
            authorized_client_keys=allowed,
            process_factory=serve,
            encoding=None,
        )

    server = asyncio.run_coroutine_threadsafe(listen(), loop).result()
    port = server.get_port()
    public = own.export_public_key().decode().strip()
    (ssh / "known_hosts").write_text(f"[{HOST}]:{port} {public}\n")

    async def end() -> None:
        server.close()
        await server.wait_closed()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    try:
        yield f"ssh://git@{HOST}:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _pump(source: Any, target: Any) -> None:
    """Copy a stream to its end."""
    while piece := await source.read(1 << 16):
        target.write(piece)
        await target.drain()
    if target.can_write_eof():
        target.write_eof()

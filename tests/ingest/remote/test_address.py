"""Which addresses of repositories are accepted, and from which hosts they are fetched."""

import socket
from typing import Any

import pytest
from django.test import Client

from apps.embedding.catalogue import DEFAULT_MODEL
from apps.index.models import Clone, IngestRun
from apps.ingest.remote import address
from tests.ingest.remote.cloning import cloned
from tests.ingest.requests import post

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("text", "url", "ref", "name"),
    [
        ("https://github.com/pallets/flask", "https://github.com/pallets/flask", "", "flask"),
        ("https://GitHub.com:443/a/b.git@v1", "https://github.com/a/b.git", "v1", "b@v1"),
        ("https://h.example:8443/b@x/y", "https://h.example:8443/b", "x/y", "b@x~y"),
        ("https://github.com/a/b/", "https://github.com/a/b", "", "b"),
        ("git@GitHub.com:a/b", "git@github.com:a/b", "", "b"),
        ("https://h.example/@scope/b", "https://h.example/@scope/b", "", "b"),
        ("ssh://git@h.example:2222/~a/b", "ssh://git@h.example:2222/~a/b", "", "b"),
        ("git@github.com:a/b.git", "git@github.com:a/b.git", "", "b"),
        ("git@github.com:a/b.git@main", "git@github.com:a/b.git", "main", "b@main"),
        ("file:///srv/b@v2", "file:///srv/b", "v2", "b@v2"),
        ("https://[2001:db8::1]/b", "https://[2001:db8::1]/b", "", "b"),
    ],
)
def test_an_address_is_read(text: str, url: str, ref: str, name: str) -> None:
    remote = address.read(text)
    assert (remote.url, remote.ref, remote.names[0]) == (url, ref, name)
    assert address.is_remote(text)


@pytest.mark.door
@pytest.mark.parametrize(
    "text",
    [
        "http://github.com/a/b",
        "git://github.com/a/b",
        "ftp://github.com/a/b",
        "ext::sh -c touch% /tmp/x",
        "https://user:secret@github.com/a/b",
        "https://user@github.com/a/b",
        "ssh://-oProxyCommand=x/a",
        "ssh://-oProxyCommand=x@h.example/a",
        "ssh://git:secret@h.example/a",
        "git@-host:a",
        "https://github.com",
        "https://github.com/",
        "https:///a",
        "https://github.com/a?x=1",
        "https://github.com/a#b",
        "https://github.com/a/../b",
        "https://github.com/a/%2e%2e/b",
        "https://github.com/a%0ab",
        "https://github.com/a b",
        "https://github.com/a\\b",
        "https://github.com/a@-x",
        "https://github.com/a@x..y",
        "https://github.com/a@x.lock",
        "https://github.com/a@x:y",
        "https://github.com/a@x@{1}",
        "https://github.com:0x/a",
        "https://github.com:99999/a",
        "https://169.254.169.254/a",
        "https://[fe80::1%25eth0]/a",
        "https://0xa9fea9fe/a",
        "https://gíthub.com/a\u202e",
        "file://host/a",
        "file:///",
        "https://github.com/.@main",
        f"https://github.com/{'a' * 1_000}",
    ],
)
def test_another_address_is_refused(client: Client, text: str) -> None:
    status, answer = post(client, "/ingest/start", {"path": text, "model": DEFAULT_MODEL})
    assert (status, answer["code"]) == (400, "URL_REFUSED"), answer
    assert "secret" not in answer["message"]
    assert not IngestRun.objects.exists() and not Clone.objects.exists()


@pytest.mark.parametrize("text", ["/srv/a", "~/a", "a@b", "C:\\a", "", "./x:y", "/a@b:c"])
def test_a_folder_is_no_address(text: str) -> None:
    assert not address.is_remote(text)


@pytest.mark.door
@pytest.mark.fault("A hostile git server")
@pytest.mark.parametrize(
    "found",
    [
        *("127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "100.64.0.1", "0.0.0.0"),
        *("169.254.169.254", "::1", "fe80::1", "fd00:ec2::254", "::ffff:10.0.0.1"),
        *("64:ff9b::7f00:1", "2002:7f00:1::", "64:ff9b:1::7f00:1", "fec0::1"),
    ],
)
def test_a_host_in_a_private_network_is_refused(
    client: Client, monkeypatch: Any, found: str
) -> None:
    """Also where only one of its addresses is one."""
    family = socket.AF_INET6 if ":" in found else socket.AF_INET

    def resolve(*arguments: object, **options: object) -> list[Any]:
        public = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.215.14", 443))
        return [public, (family, socket.SOCK_STREAM, 6, "", (found, 443))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    for url in ("https://h.example/a", "git@h.example:a"):
        status = cloned(client, url)
        assert (status["state"], status["errorCode"]) == ("error", "URL_REFUSED")


@pytest.mark.door
def test_a_name_without_an_address_is_an_error(client: Client, monkeypatch: Any) -> None:
    def resolve(*arguments: object, **options: object) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    status = cloned(client, "https://h.example/a")
    assert (status["state"], status["errorCode"]) == ("error", "CLONE_FAILED")
    assert "h.example has no address" in status["lastError"]

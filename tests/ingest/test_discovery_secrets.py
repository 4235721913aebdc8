"""What an ingest never takes: codeinfo's own data, and files that hold credentials."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.embedding.catalogue import DEFAULT_MODEL
from apps.index.models import IngestRun
from apps.ingest.discovery.discovery import discover
from tests.ingest.discovered import names, reasons
from tests.support.git import commit_all, init
from tests.support.ingested import write_files

BASE64 = "MIIEpAIBAAKCAQEA7bq0h2v9s8Jx1f/3kQ+2ZyXwVuTsRqPoNmLkJiHgFeDcBa9\n"


def key(kind: str = "RSA PRIVATE KEY", lines: int = 3, before: str = "") -> str:
    """A made-up key block, each line after `before`."""
    block = [f"-----BEGIN {kind}-----\n", *[BASE64] * lines, f"-----END {kind}-----\n"]
    return "".join(before + line for line in block)


SERVICE_ACCOUNT = json.dumps({"type": "service_account", "private_key": key("PRIVATE KEY")})
USER_ACCOUNT = json.dumps(
    {"type": "authorized_user", "client_secret": "d-FL95", "refresh_token": "1//0g"}, indent=2
)


@pytest.mark.fault("Forged log lines, and secrets")
@pytest.mark.door
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("auth.json", '{"tokens": {}}'),
        ("codex/auth.json", '{"tokens": {}}'),
        ("dotfiles/config/gh/hosts.yml", "github.com:\n  oauth_token: x\n"),
        (".config/gh/hosts.yml", "github.com:\n  oauth_token: x\n"),
        (".claude/.credentials.json", "{}"),
        (".terraform.d/credentials.tfrc.json", "{}"),
        (".config/gcloud/application_default_credentials.json", "{}"),
        (".config/gcloud/legacy_credentials/me@example.com/adc.json", "{}"),
        ("keys/my-project-1234.json", SERVICE_ACCOUNT),
        ("adc.json", USER_ACCOUNT),
        ("kubeconfig", "apiVersion: v1\n"),
        ("kubeconfig.yaml", "apiVersion: v1\n"),
        ("deploy/kubeconfig-prod", "apiVersion: v1\n"),
        ("prod.kubeconfig", "apiVersion: v1\n"),
        (".m2/settings.xml", "<settings/>"),
        ("home/.m2/settings.xml", "<settings/>"),
        ("notes.md", f"The key of the server:\n\n{key()}\nKeep it safe.\n"),
        ("values.yaml", f"tls:\n  key: |\n{key(before='    ')}"),
        ("key.py", f'KEY = """{key("EC PRIVATE KEY")}"""\n'),
        ("key.js", "const key = [\n" + key(before="  '").replace("\n", "',\n") + "];\n"),
        ("key.go", "// x\nvar key = " + json.dumps(key("OPENSSH PRIVATE KEY")) + "\n"),
        ("signing.asc.txt", f"x\n{key('PGP PRIVATE KEY BLOCK')}"),
        ("encrypted.txt", "x\n" + key().replace("Y-----\n", "Y-----\nProc-Type: 4,E\n\n", 1)),
        ("crlf.txt", "x\r\n" + key().replace("\n", "\r\n")),
        ("late.md", "A line of prose.\n" * 3_500 + key()),
    ],
)
def test_credentials_are_listed_as_skipped(folder: Path, name: str, content: str) -> None:
    write_files(folder, {name: content})
    found = discover(folder)
    assert reasons(found) == {name: "Secret"}
    commit_all(init(folder))
    assert reasons(discover(folder)) == {name: "Secret"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("keys.py", 'MARK = "-----BEGIN PRIVATE KEY-----"\n'),
        ("guide.md", "It begins with\n\n-----BEGIN RSA PRIVATE KEY-----\n\nand ends so.\n"),
        ("guide.md", "x\n-----BEGIN PRIVATE KEY-----\nyour key\n-----END PRIVATE KEY-----\n"),
        ("guide.md", f"x\n{key().replace(BASE64, 'MIIEpAIBAAKC...' + chr(10))}"),
        ("test_keys.py", f'SHORT = """{key(lines=2)}"""\n'),
        ("cert.py", f'CERTIFICATE = """{key("CERTIFICATE")}{key("PUBLIC KEY")}"""\n'),
        ("open.py", f'BEGIN = """{key().partition("-----END")[0]}"""\nx = 1\n'),
        ("kubeconfig.go", "package main\n"),
        ("kubeconfig_test.py", "x = 1\n"),
        ("kubeconfig.md", "# kubeconfig\n"),
        ("app/settings.xml", "<settings/>"),
        ("ansible/hosts.yml", "all:\n"),
        ("adc.json", '{"channels": 8}'),
        ("auth.example.json", "{}"),
        ("schema.json", '{"type": "authorized_user", "description": "no secret"}'),
    ],
)
def test_files_that_only_mention_credentials_are_eligible(
    folder: Path, name: str, content: str
) -> None:
    write_files(folder, {name: content})
    assert names(discover(folder)) == [name]


Turn = Callable[..., None]
FILES = {"a.py": "x", "state/b.py": "x", "state/deep/c.py": "x", "logs-of/d.py": "x"}


@pytest.mark.fault("Forged log lines, and secrets")
@pytest.mark.door
def test_our_own_data_folder_is_left_out_whatever_its_name(folder: Path, configure: Turn) -> None:
    """By its real path: the setting may name it through a link."""
    write_files(folder / "root", FILES)
    (folder / "link").symlink_to(folder / "root/state")
    configure(data_dir=folder / "link")
    walked = discover(folder / "root")
    assert names(walked) == ["a.py", "logs-of/d.py"]
    assert reasons(walked) == {"state/": "Data of codeinfo"}
    commit_all(init(folder / "root"))
    assert discover(folder / "root") == replace(walked, dirty=False)


def test_so_are_the_home_of_codex_and_the_log(folder: Path, configure: Turn) -> None:
    root = write_files(folder, FILES | {"logs-of/server.txt": "x", "logs-of/server.txt.1": "x"})
    configure(codex_home=root / "state/deep", log_file_path=root / "logs-of/server.txt")
    found = discover(root)
    assert names(found) == ["a.py", "logs-of/d.py", "state/b.py"]
    assert reasons(found) == {
        "logs-of/server.txt": "Data of codeinfo",
        "logs-of/server.txt.1": "Data of codeinfo",
        "state/deep/": "Data of codeinfo",
    }


@pytest.mark.fault("An ingest is refused", "Forged log lines, and secrets")
@pytest.mark.door
@pytest.mark.parametrize("inside", ["state", "state/deep"])
def test_a_folder_in_our_own_data_is_refused(
    client: Client, db: Any, folder: Path, configure: Turn, inside: str
) -> None:
    write_files(folder, FILES)
    configure(data_dir=folder / "state")
    body = {"path": str(folder / inside), "name": "own", "model": DEFAULT_MODEL}
    answer = client.post("/ingest/start", json.dumps(body), content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "OWN_DATA")
    assert not IngestRun.objects.exists()
    page = client.post("/ui/ingest/start", body)
    assert page.status_code == 422
    assert "holds codeinfo&#x27;s own data" in page.content.decode()

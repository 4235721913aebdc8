"""`manage.py doctor`: set-ups that are broken for real, and what it says of each."""

import io
import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from apps.core.security import peer_users
from apps.index.models import IndexLock, Root
from tests.browser.product import Product, running
from tests.ports import free_ports
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.support import forks
from tests.support.ingested import write_files
from tests.support.locked import used_elsewhere

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

PATIENCE = 60
Doctor = Callable[..., tuple[bool, dict[str, Any]]]


@pytest.fixture
def doctor(configure: Callable[..., None], folder: Path) -> Doctor:
    """doctor(setting=…): whether all is well in a new installation with these, and each finding
    by its id."""
    port = free_ports(3)
    usual = {
        "data_dir": folder / "data",
        "log_file_path": folder / "server.log",
        "ingest_base": (folder,),
        "port": port,
        "mcp_port": port + 1,
        "agents_mcp_port": port + 2,
    }

    def ask(**config: Any) -> tuple[bool, dict[str, Any]]:
        """In this process: its sockets, files and servers are real."""
        configure(**usual | config)
        out = io.StringIO()
        failed = False
        try:
            call_command("doctor", "--json", stdout=out)
        except SystemExit as error:
            failed = error.code == 1
        body = json.loads(out.getvalue())
        assert failed is not body["ok"]
        return body["ok"], {found["id"]: found for found in body["checks"]}

    return ask


def test_a_working_installation_passes_all_checks(doctor: Doctor) -> None:
    well, found = doctor()
    assert {id: each["detail"] for id, each in found.items() if each["level"] == "bad"} == {}
    assert well
    for id in ("versions", "data", "base:1", "port:PORT", "schema", "database", "index"):
        assert found[id]["level"] == "ok", found[id]


@pytest.mark.fault("A part of the installation is broken")
def test_a_port_that_is_taken(doctor: Doctor, settings: Any) -> None:
    settings.VARIABLES_SET = frozenset({"MCP_PORT"})
    with socket.create_server(("127.0.0.1", 0)) as other:
        well, found = doctor(mcp_port=other.getsockname()[1])
    assert not well
    assert found["port:MCP_PORT"]["level"] == "bad"
    assert found["port:MCP_PORT"]["fix"] == "Stop what is there, or set MCP_PORT."
    assert found["port:PORT"]["level"] == "ok"


def test_default_ports_that_are_taken_are_no_problem_as_verbs_take_others(doctor: Doctor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        well, found = doctor(port=other.getsockname()[1])
    assert well
    assert found["port:PORT"]["level"] == "warn"
    assert "in use" in found["port:PORT"]["detail"] and "next ones" in found["port:PORT"]["fix"]


def test_two_ports_that_are_one(doctor: Doctor) -> None:
    port = free_ports(3)
    well, found = doctor(port=port, mcp_port=port)
    assert not well
    assert "The same as MCP_PORT" in found["port:PORT"]["detail"]


@pytest.mark.fault("A part of the installation is broken")
def test_a_base_folder_that_cannot_be_read(doctor: Doctor, folder: Path) -> None:
    (folder / "file").write_text("x")
    bases = (folder / "none", folder / "file", folder)
    well, found = doctor(ingest_base=bases)
    assert not well
    assert [found[f"base:{n}"]["level"] for n in (1, 2, 3)] == ["bad", "bad", "ok"]
    assert "CODEINFO_INGEST_BASE" in found["base:1"]["fix"]


def test_without_a_server_nothing_follows_and_chroma_is_not_opened(
    doctor: Doctor, folder: Path
) -> None:
    well, found = doctor(chroma="follow")
    assert well
    assert (found["chroma"]["level"], found["chroma"]["word"]) == ("off", "Not running")
    assert found["chroma"]["detail"] == "It follows while codeinfo runs."
    assert not (folder / "data" / "chroma").exists()
    assert doctor(chroma="off")[1]["chroma"]["word"] == "Off"


@pytest.mark.fault("A part of the index is lost")
def test_without_a_server_the_parts_are_compared_with_what_was_published(
    doctor: Doctor,
) -> None:
    root = Root(path="/code/redis", name="redis", model="m", generation=1, chunks=9, embedded=9)
    root.save()
    IndexLock.objects.create(model="m", dimension=256)
    well, found = doctor()
    assert not well
    assert found["index"]["detail"] == "redis: 9 of 9 passages of the index are missing."
    assert Root.objects.get().damage == ""


@pytest.mark.fault("A part of the installation is broken")
def test_a_data_folder_that_another_process_uses(doctor: Doctor, folder: Path) -> None:
    with used_elsewhere(folder / "data"):
        well, found = doctor()
    assert not well
    assert found["data"]["level"] == "bad"
    assert "Another process uses the data folder" in found["data"]["detail"]
    assert doctor()[1]["data"]["level"] == "ok"


@pytest.mark.fault("A part of the installation is broken")
def test_a_wrong_key(doctor: Doctor) -> None:
    with OpenAIStandIn(key="the-right-one") as server:
        wrong = {"openai_base_url": server.url, "openai_api_key": "canary-wrong"}
        well, found = doctor(**wrong, embedding_base_url=server.url)
        assert not well
        assert "check CODEINFO_OPENAI_API_KEY" in found["providers:openai"]["detail"]
        assert "refused the key" in found["embedder"]["detail"]
        assert "canary" not in str(found)
        assert doctor(openai_base_url=server.url, openai_api_key="the-right-one")[0]


@pytest.mark.fault("A part of the installation is broken")
def test_a_provider_that_is_down(doctor: Doctor) -> None:
    url = f"http://127.0.0.1:{free_ports()}/v1"
    well, found = doctor(openai_base_url=url)
    assert not well
    assert found["providers:openai"]["level"] == "bad"
    assert found["providers:openai"]["detail"].startswith("Nothing answers at http://127.0.0.1:")


def test_a_provider_that_is_not_set_up_may_be_unavailable(doctor: Doctor) -> None:
    well, found = doctor()
    assert well and found["providers:openai"]["level"] == "off"
    well, found = doctor(chat_provider="openai")
    assert not well and found["providers:openai"]["level"] == "bad"


def test_unsuitable_permissions_of_folders_and_files_are_reported(
    doctor: Doctor, folder: Path
) -> None:
    (folder / "file").write_text("x")
    well, found = doctor(data_dir=folder / "file" / "data", log_file_path=folder)
    assert not well
    assert (found["data"]["level"], found["log"]["level"]) == ("bad", "bad")
    (folder / "data").mkdir()
    (folder / "data" / "secret.key").write_text("x")
    (folder / "data" / "secret.key").chmod(0o644)
    well, found = doctor()
    assert well and found["private"]["level"] == "warn"
    assert "secret.key" in found["private"]["detail"]


def test_an_address_that_others_reach_without_a_login(doctor: Doctor) -> None:
    well, found = doctor(bind="0.0.0.0")
    assert not well
    assert "CODEINFO_REQUIRE_LOGIN" in found["access"]["detail"]
    well, found = doctor(bind="0.0.0.0", allow_open_access=True)
    assert well and found["access"]["level"] == "warn"


def test_an_entry_of_a_client_that_runs_the_open_folder(
    doctor: Doctor, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(folder) if name == "HOME" else "")
    assert doctor()[1]["clients"]["level"] == "ok"
    old = {"command": "/p/python", "args": ["-m", "codeinfo_cli", "mcp"]}
    files = {".cursor/mcp.json": "mcpServers", ".config/zed/settings.json": "context_servers"}
    for name, key in files.items():
        write_files(folder, {name: json.dumps({key: {"codeinfo": old}})})
    well, found = doctor()
    assert well and found["clients"]["level"] == "warn"
    assert "Cursor and Zed lets a repository" in found["clients"]["detail"]
    assert ".venv/bin/codeinfo install cursor && " in found["clients"]["fix"]


def test_a_login_that_keeps_agents_out(doctor: Doctor) -> None:
    well, found = doctor(require_login=True)
    assert well and found["access"]["level"] == "warn"
    assert "CODEINFO_MCP_TOKEN" in found["access"]["fix"]
    assert doctor(require_login=True, mcp_token="m")[1]["access"]["level"] == "ok"


@pytest.mark.fault("Other users of the machine")
def test_which_local_users_are_served(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_users, "is_known", lambda: True)
    assert "this user and of root" in doctor()[1]["users"]["detail"]
    assert "token or a login" in doctor(require_login=True)[1]["users"]["detail"]
    well, found = doctor(require_login=False, loopback_users="any")
    assert well and found["users"]["level"] == "warn"
    monkeypatch.setattr(peer_users, "is_known", lambda: False)
    found = doctor(loopback_users="own")[1]
    assert "does not report" in found["users"]["detail"]
    assert "CODEINFO_API_TOKEN" in found["users"]["fix"]


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running(tmp_path_factory.mktemp("doctor")) as served:
        yield served


def command(product: Product, port: int, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(product.data.parent),
        "CODEINFO_DATA_DIR": str(product.data),
        "CODEINFO_INGEST_BASE": str(product.repos),
        "PORT": str(port),
    }
    return forks.manage("doctor", environ=env | environ)


def test_beside_the_server_that_runs_all_is_well(doctor: Doctor, product: Product) -> None:
    port = int(product.url.rpartition(":")[2])
    ports = {"port": port, "mcp_port": port + 1, "agents_mcp_port": port + 2}
    well, found = doctor(data_dir=product.data, **ports)
    assert well, found
    assert found["port:MCP_PORT"]["detail"] == "Served by codeinfo, which runs."
    assert found["worker"]["detail"] == "Waits for folders to ingest."
    assert found["index"]["level"] == "ok" and found["chroma"]["word"] != "Not running"


def test_the_server_of_a_data_folder_is_known_on_whatever_port_it_serves(
    doctor: Doctor, product: Product
) -> None:
    well, found = doctor(data_dir=product.data)
    assert well, found
    assert found["port:PORT"]["detail"] == "Free."
    assert found["worker"]["detail"] == "Waits for folders to ingest."
    with socket.create_server(("127.0.0.1", 0)) as other:
        well, found = doctor(data_dir=product.data, port=other.getsockname()[1])
    assert well and product.url in found["port:PORT"]["detail"]


@pytest.mark.fault("Another server is on the port")
def test_what_serves_another_data_folder_on_our_port_is_not_our_server(
    doctor: Doctor, product: Product, settings: Any
) -> None:
    settings.VARIABLES_SET = frozenset({"PORT"})
    port = int(product.url.rpartition(":")[2])
    well, found = doctor(port=port, mcp_port=port + 1, agents_mcp_port=port + 2)
    assert not well
    assert found["port:PORT"]["fix"] == "Stop what is there, or set PORT."
    # Nothing of it is told as ours: this installation has no worker, and its index is compared.
    assert "worker" not in found
    assert found["index"]["detail"] == "0 repositories"


@pytest.mark.fault("A part of the installation is broken")
def test_the_exit_code_says_that_something_is_broken(product: Product) -> None:
    done = command(product, free_ports(3), CODEINFO_INGEST_BASE=str(product.repos / "gone"))
    assert done.returncode == 1
    assert "BROKEN  Ingest base" in done.stdout and "1 broken" in done.stdout


def test_a_setting_that_cannot_be_right_is_named_without_a_traceback(product: Product) -> None:
    env = {"PATH": os.environ["PATH"], "PORT": "many", "CODEINFO_DATA_DIR": str(product.data)}
    done = forks.manage("doctor", environ=env)
    assert done.returncode == 1
    assert done.stderr == "codeinfo cannot start: PORT cannot be 'many'\n"

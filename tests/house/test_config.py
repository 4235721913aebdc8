"""The environment is read once, typed, and loudly."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from apps.core.config import BASE_DIR, Config, default_bases


def test_without_variables_the_defaults_apply() -> None:
    known = Config.read({})
    assert (known.port, known.mcp_port, known.agents_mcp_port) == (5010, 5011, 5012)
    assert known.retrieval_cutoff == 1.4
    assert known.log_file_path == known.data_dir / "logs" / "server.log"


def test_the_other_ports_follow_port() -> None:
    known = Config.read({"PORT": "7000", "MCP_PORT": "9"})
    assert (known.mcp_port, known.agents_mcp_port) == (9, 7002)


def test_a_variable_that_is_no_setting_is_ignored() -> None:
    assert Config.read({"CODEINFO_LOGIN_FAILURES": "none"}) == Config.read({})


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_value_means_unset(blank: str) -> None:
    known = Config.read({"CODEINFO_RETRIEVAL_DISTANCE_CUTOFF": blank, "PORT": blank})
    assert (known.retrieval_cutoff, known.port) == (1.4, 5010)


@pytest.mark.fault("An address that leads elsewhere")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CODEINFO_EDITOR", "javascript://{path}"),
        ("CODEINFO_EDITOR", "emacs"),
        ("PORT", "x"),
        ("PORT", "0"),
        ("PORT", "70000"),
        ("CODEINFO_REQUIRE_LOGIN", "maybe"),
        ("CODEINFO_OPENAI_BASE_URL", "ftp://x"),
        ("CODEINFO_OPENAI_BASE_URL", "localhost:1"),
        ("LMSTUDIO_BASE_URL", "http://169.254.169.254"),
        ("LMSTUDIO_BASE_URL", "127.0.0.1:1234"),
        ("CODEINFO_LMSTUDIO_API_TOKEN", "sk-other"),
        ("LOG_LEVEL", "loud"),
        ("CODEINFO_TRUSTED_PROXIES", "proxy.example"),
        ("CODEINFO_LOOPBACK_USERS", "some"),
        ("INGEST_TOKEN_MARGIN", "2"),
        ("INGEST_MAX_FILE_BYTES", "1 MB"),
        ("CODEINFO_CHAT_PROVIDER", "hal"),
    ],
)
def test_a_wrong_value_is_refused_with_the_name_of_the_variable(name: str, value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=name):
        Config.read({name: value})


@pytest.mark.parametrize(
    ("name", "value", "setting", "expected"),
    [
        ("CODEINFO_RETRIEVAL_DISTANCE_CUTOFF", "-1", "retrieval_cutoff", 1.4),
        ("CODEINFO_RETRIEVAL_DISTANCE_CUTOFF", "nan", "retrieval_cutoff", 1.4),
        ("CODEINFO_RETRIEVAL_DISTANCE_CUTOFF", "0", "retrieval_cutoff", 0),
        ("CODEINFO_RETRIEVAL_FALLBACK_CHUNKS", "0", "retrieval_fallback_chunks", 2),
        ("CODEINFO_RETRIEVAL_FALLBACK_CHUNKS", "3.9", "retrieval_fallback_chunks", 3),
        ("CODEINFO_TOOL_MAX_CHARS", "-5", "tool_max_chars", 40_000),
        ("CODEINFO_TOOL_CHUNK_MAX_CHARS", "inf", "tool_chunk_max_chars", 5_000),
        ("CODEINFO_RETRIEVAL_DISTANCE_CUTOFF", "near", "retrieval_cutoff", 1.4),
        ("CODEINFO_RETRIEVAL_FALLBACK_CHUNKS", "two", "retrieval_fallback_chunks", 2),
        ("CODEINFO_TOOL_MAX_CHARS", "40k", "tool_max_chars", 40_000),
        ("CODEINFO_TOOL_CHUNK_MAX_CHARS", "many", "tool_chunk_max_chars", 5_000),
        ("INGEST_FLUSH_EVERY", "9999", "ingest_flush_every", 500),
        ("INGEST_FLUSH_EVERY", "0", "ingest_flush_every", 1),
        ("CODEINFO_RETRIEVAL_CUTOFF_DISABLED", "TRUE", "retrieval_cutoff_disabled", True),
        ("CODEINFO_RETRIEVAL_CUTOFF_DISABLED", "yes", "retrieval_cutoff_disabled", False),
        ("CHROMA_URL", "chroma", "chroma_url", "http://chroma:8000"),
        ("CHROMA_URL", "https://c.example:9", "chroma_url", "https://c.example:9"),
        ("MONGO_URI", "mongodb://m/x", "database_url", "mongodb://m/x"),
        ("CODEX_WORKDIR", "/code", "codex_workdir", Path("/code")),
        ("CODEINFO_CODEX_WORKDIR", "/code", "codex_workdir", Path("/code")),
        ("MCP_LMSTUDIO_MODEL", "qwen", "mcp_lmstudio_model", "qwen"),
        ("LMSTUDIO_DEFAULT_MODEL", "qwen", "mcp_lmstudio_model", "qwen"),
    ],
)
def test_values_are_parsed_as_the_contract_defines(
    name: str, value: str, setting: str, expected: object
) -> None:
    assert getattr(Config.read({name: value}), setting) == expected


def test_of_two_names_of_a_variable_the_first_of_the_contract_counts() -> None:
    known = Config.read(
        {
            "CODEX_WORKDIR": "/first",
            "CODEINFO_CODEX_WORKDIR": "/second",
            "MCP_LMSTUDIO_MODEL": "first",
            "LMSTUDIO_DEFAULT_MODEL": "second",
        }
    )
    assert (known.codex_workdir, known.mcp_lmstudio_model) == (Path("/first"), "first")


def test_a_header_of_a_proxy_needs_to_know_the_proxy() -> None:
    header = {"CODEINFO_SECURE_PROXY_HEADER": "X-Forwarded-Proto"}
    with pytest.raises(ImproperlyConfigured, match="CODEINFO_TRUSTED_PROXIES"):
        Config.read(header)
    known = Config.read({**header, "CODEINFO_TRUSTED_PROXIES": "127.0.0.1, 10.0.0.0/8"})
    assert [str(network) for network in known.trusted_proxies] == ["127.0.0.1/32", "10.0.0.0/8"]


def test_the_ingest_base_is_data_inside_a_container_and_home_elsewhere() -> None:
    assert Config.read({"CODEINFO_IN_CONTAINER": "true"}).ingest_base == (Path("/data"),)
    assert Config.read({}).ingest_base == ()
    assert default_bases() == (Path.home(), BASE_DIR)

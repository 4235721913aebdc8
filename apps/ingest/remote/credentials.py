"""What git logs in with: a token of CODEINFO_CLONE_TOKEN, or what the user's own helper knows; for
SSH the user's keys. git asks for it when a server wants it, and for the host alone that has it.
"""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from apps.core.config import config
from apps.core.values.addresses import IPAddress
from apps.ingest.discovery import user_config
from apps.ingest.remote.address import PORTS, RemoteAddress

# The name beside a token that has none: any for GitLab and Gitea, this one for GitHub.
USER = "x-access-token"
GIVEN = """!f() { test "$1" = get && printf 'username=%s\\npassword=%s\\n' \
"$CODEINFO_CLONE_USER" "$CODEINFO_CLONE_PASSWORD"; }; f"""
# The helper is the user's own program: it runs as if the user had called git.
ASKED = '!f() {{ test "$1" = get && cd / && exec env -i {} git credential fill; }}; f'
KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")


def token_of(remote: RemoteAddress) -> tuple[str, str] | None:
    """Return user and password for the host of an address, if CODEINFO_CLONE_TOKEN has them.

    Another port of a host is another server.
    """
    tokens = {host.lower(): token for host, token in config().clone_token}
    token = tokens.get(f"{remote.host}:{remote.port}")
    if not token and remote.port == PORTS["https"]:
        token = tokens.get(remote.host)
    if not token:
        return None
    user, colon, password = token.partition(":")
    return (user, password) if colon else (USER, token)


def for_https(remote: RemoteAddress, path: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the configuration and the variables of git for HTTPS.

    path: the variable PATH
    """
    settings: dict[str, str] = {}
    if authorities := user_config.setting(b"http", b"sslcainfo"):
        settings["http.sslCAInfo"] = os.path.expanduser(authorities)
    if given := token_of(remote):
        secrets = {"CODEINFO_CLONE_USER": given[0], "CODEINFO_CLONE_PASSWORD": given[1]}
        return settings | {"credential.helper": GIVEN}, secrets
    lent = {
        "HOME": str(Path.home()),
        "PATH": path,
        "GIT_CONFIG_GLOBAL": str(config().git_config),
        "XDG_CONFIG_HOME": str(config().xdg_config_home),
        "GIT_TERMINAL_PROMPT": "0",
    }
    # Without a global file that git names itself, it reads both.
    if config().git_config == Path.home() / ".gitconfig":
        del lent["GIT_CONFIG_GLOBAL"]
    words = " ".join(shlex.quote(f"{name}={value}") for name, value in lent.items())
    return settings | {"credential.helper": ASKED.format(words)}, {}


def ssh_command(remote: RemoteAddress, address: IPAddress) -> str:
    """Return the command that git uses as ssh. It connects to `address`, believes only a key of the
    host that the user's `known_hosts` has, and reads no configuration of ssh."""
    folder = Path.home() / ".ssh"
    alias = remote.host
    if remote.port != PORTS["ssh"]:
        alias = f"[{remote.host}]:{remote.port}"
    options = {
        "BatchMode": "yes",
        "CheckHostIP": "no",
        "ClearAllForwardings": "yes",
        "ConnectTimeout": "20",
        "HostKeyAlias": alias,
        "HostName": str(address),
        "PermitLocalCommand": "no",
        "ServerAliveCountMax": "2",
        "ServerAliveInterval": "15",
        "StrictHostKeyChecking": "yes",
        # As ssh reads a path in a list of several.
        "UserKnownHostsFile": '"{}"'.format(str(folder / "known_hosts").replace("%", "%%")),
    }
    words = ["ssh", "-F", "none"]
    for name, value in options.items():
        words += ["-o", f"{name}={value}"]
    for key in KEYS:
        if (folder / key).is_file():
            words += ["-i", str(folder / key)]
    return shlex.join(words)

"""Detects files with credentials, by name, or by a private key in their first bytes."""

import re2

from apps.code.languages import extension_of, known_type
from apps.ingest.discovery.tables import PatternTable

# How many bytes of a file are searched.
SCAN_BYTES = 65_536

NAMES = PatternTable(
    """
    .env .env.* *.env .envrc *.pem *.key *.p12 *.pfx *.p8 *.jks *.keystore *.kdbx *.ppk *.gpg
    id_rsa* id_dsa* id_ecdsa* id_ed25519* .npmrc .pypirc .netrc _netrc .pgpass .my.cnf .htpasswd
    .git-credentials .dockercfg
    .vault-token credentials credentials.json credentials.y*ml credentials.toml
    credentials.ini client_secret*.json service-account*.json service_account*.json secrets.json
    secrets.y*ml secrets.toml secrets.ini secret.json secret.y*ml *.tfvars *.tfvars.json
    *.tfstate *.tfstate.backup master.key .s3cfg .boto wp-config.php
    auth.json .credentials.json credentials.tfrc.json application_default_credentials.json
    *.kubeconfig .*_history .mylogin.cnf htpasswd .terraformrc *.ovpn *.keytab *.agekey
    """
)
# Files that are secrets only in a certain folder.
PATHS = PatternTable(
    """
    .docker/config.json .aws/credentials .aws/config .kube/config .ssh/* gh/hosts.yml
    .m2/settings.xml
    """
)
# Examples and public keys are never secrets.
EXEMPT = PatternTable(
    """
    *.example *.sample *.template *.dist *.example.* *.sample.* *.template.* *.pub
    """
)
KUBECONFIG = "kubeconfig"
# `kubeconfig.prod` is a secret, `kubeconfig.go` is source code.
KUBECONFIG_EXTENSIONS = frozenset({"yaml", "yml", "json", "conf", "cfg", "ini", "txt"})
# Names that may be a secret, for one quick lookup.
SUSPECTS = PatternTable(f"{NAMES.table} {KUBECONFIG}* hosts.yml")

BEGIN = re2.compile(rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")
END = re2.compile(rb"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")
AT_ITS_START = re2.compile(rb"\s*-----BEGIN [A-Z ]*PRIVATE KEY-----")
# Shorter lines are words.
BASE64 = re2.compile(rb"[A-Za-z0-9+/]{16,}={0,2}")
HEADER = re2.compile(rb"[A-Za-z-]+: .*")
# Characters around the lines of a key in source code, comments and YAML.
AROUND = b" \t\r\"'`,;.+\\|>#*"
FEWEST_LINES = 3

GOOGLE_USER = re2.compile(rb'"type"\s*:\s*"authorized_user"')
GOOGLE_TOKEN = re2.compile(rb'"refresh_token"\s*:\s*"[^"]')


def is_secret_name(folder: str, name: str) -> bool:
    """Whether a file is a secret by its name and the path of its folder, both in lower case."""
    parent = folder.rpartition("/")[2]
    named = (
        NAMES.match(name)
        or PATHS.match(f"{parent}/{name}")
        or _is_kubeconfig(name)
        or (name == "adc.json" and "legacy_credentials" in folder.split("/"))
    )
    return named and not EXEMPT.match(name)


def _is_kubeconfig(name: str) -> bool:
    return name.startswith(KUBECONFIG) and (
        extension_of(name) in KUBECONFIG_EXTENSIONS or known_type(name) is None
    )


def holds_secret(path: str, data: bytes) -> bool:
    """Whether a file is a secret by its first SCAN_BYTES."""
    if b"PRIVATE KEY" in data and (AT_ITS_START.match(data) or _has_key_block(data)):
        return True
    # The credentials of a user, as `gcloud` writes them. Those of a service contain a key.
    return (
        extension_of(path) == "json"
        and GOOGLE_USER.search(data) is not None
        and GOOGLE_TOKEN.search(data) is not None
    )


def _has_key_block(data: bytes) -> bool:
    """Whether there is a BEGIN line, base64 lines and an END line. Other files only mention
    keys."""
    inside, lines = False, 0
    # JSON and string literals contain the line ends as \n.
    for line in data.replace(b"\\r", b"").replace(b"\\n", b"\n").split(b"\n"):
        text = line.strip(AROUND)
        if BEGIN.search(line):
            inside, lines = True, 0
        elif inside and END.search(line):
            if lines >= FEWEST_LINES:
                return True
            inside = False
        elif inside and BASE64.fullmatch(text):
            lines += 1
        elif inside and text and not HEADER.fullmatch(text):
            inside = False
    return False

"""Files that hold credentials: by their name, and by a private key among their first lines."""

import re2

from apps.code.languages import extension_of, known_type
from apps.ingest.discovery.tables import AnyOf

# How much of a file is searched.
LOOK_BYTES = 65_536

NAMES = AnyOf(
    """
    .env .env.* *.env .envrc *.pem *.key *.p12 *.pfx *.p8 *.jks *.keystore *.kdbx *.ppk *.gpg
    id_rsa* id_dsa* id_ecdsa* id_ed25519* .npmrc .pypirc .netrc _netrc .pgpass .my.cnf .htpasswd
    .git-credentials .dockercfg
    .vault-token credentials credentials.json credentials.y*ml credentials.toml
    credentials.ini client_secret*.json service-account*.json service_account*.json secrets.json
    secrets.y*ml secrets.toml secrets.ini secret.json secret.y*ml *.tfvars *.tfvars.json
    *.tfstate *.tfstate.backup master.key .s3cfg .boto wp-config.php
    auth.json .credentials.json credentials.tfrc.json application_default_credentials.json
    *.kubeconfig
    """
)
# Ordinary names, which their folder makes a secret.
PATHS = AnyOf(
    """
    .docker/config.json .aws/credentials .aws/config .kube/config .ssh/* gh/hosts.yml
    .m2/settings.xml
    """
)
# Written to be read by others.
EXEMPT = AnyOf(
    """
    *.example *.sample *.template *.dist *.example.* *.sample.* *.template.* *.pub
    """
)
KUBECONFIG = "kubeconfig"
# `kubeconfig.prod` is one, `kubeconfig.go` is about them.
KUBECONFIG_EXTENSIONS = frozenset({"yaml", "yml", "json", "conf", "cfg", "ini", "txt"})
# Names that may be a secret, for one quick look.
SUSPECTS = AnyOf(f"{NAMES.table} {KUBECONFIG}* hosts.yml")

BEGIN = re2.compile(rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")
END = re2.compile(rb"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")
AT_ITS_START = re2.compile(rb"\s*-----BEGIN [A-Z ]*PRIVATE KEY-----")
# Shorter lines are words.
BASE64 = re2.compile(rb"[A-Za-z0-9+/]{16,}={0,2}")
HEADER = re2.compile(rb"[A-Za-z-]+: .*")
# What stands around the lines of a key in source code, in comments and in YAML.
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
    """Whether a file is a secret by its first LOOK_BYTES."""
    if b"PRIVATE KEY" in data and (AT_ITS_START.match(data) or _has_key_block(data)):
        return True
    # What `gcloud` writes of a user; that of a service has a key.
    return (
        extension_of(path) == "json"
        and GOOGLE_USER.search(data) is not None
        and GOOGLE_TOKEN.search(data) is not None
    )


def _has_key_block(data: bytes) -> bool:
    """Whether there are a BEGIN line, some lines of base64 and an END line. Without such a block a
    file only speaks of keys."""
    inside, lines = False, 0
    # JSON and strings of source code write a line's end as \n.
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

"""Resolves the host of a repository, and refuses hosts in private networks (SSRF).

git connects to the addresses that were checked, and not to the name, which may resolve to another
address later.
"""

import socket
from ipaddress import ip_address, ip_network

from apps.core.config import config
from apps.core.errors import Unavailable
from apps.core.values.addresses import (
    NAT64,
    AddressRefused,
    IPAddress,
    bracketed,
    check_address,
    with_embedded,
)
from apps.ingest.remote.address import RemoteAddress, refused

# https://www.iana.org/assignments/ipv6-address-space: the others are not routed in the internet.
GLOBAL = ip_network("2000::/3")


def is_named(remote: RemoteAddress) -> bool:
    """Whether CODEINFO_CLONE_HOSTS has the host, with or without its port."""
    named = {host.lower() for host in config().clone_hosts}
    return not named.isdisjoint({remote.host, f"{remote.host}:{remote.port}"})


def addresses_of(remote: RemoteAddress) -> list[IPAddress]:
    """Resolve the host. Raises InvalidInput URL_REFUSED, and Unavailable CLONE_FAILED if it has no
    address.

    Link-local, metadata and multicast addresses are never allowed, others that are not public only
    for the hosts of CODEINFO_CLONE_HOSTS.
    """
    try:
        entries = socket.getaddrinfo(remote.host, remote.port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(ip_address(entry[4][0]) for entry in entries))
        for address in addresses:
            check_address(address)
    except AddressRefused as error:
        raise refused(f"The host {remote.host} {error}.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"The host {remote.host} has no address: {reason}."
        raise Unavailable(message, code="CLONE_FAILED") from None
    if not is_named(remote) and not all(map(_is_public, addresses)):
        raise refused(
            f"The host {remote.host} has an address in a private network: add it to "
            "CODEINFO_CLONE_HOSTS if repositories may be fetched from it."
        )
    return addresses


def _is_public(address: IPAddress) -> bool:
    is_routed = address.version == 4 or address in GLOBAL or address in NAT64
    return is_routed and all(part.is_global for part in with_embedded(address))


def pinned(remote: RemoteAddress, addresses: list[IPAddress]) -> str:
    """Return `http.curloptResolve`, with which curl connects to these addresses alone."""
    places = ",".join(bracketed(str(address)) for address in addresses)
    return f"{bracketed(remote.host)}:{remote.port}:{places}"

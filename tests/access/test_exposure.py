"""Off loopback the product does not start unprotected, unless told so in as many words."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from codeinfo.access import check_exposure
from codeinfo.authentication import allowed_hosts
from codeinfo.conf import Knobs

GUARDS = {
    "CODEINFO_REQUIRE_LOGIN": "true",
    "CODEINFO_API_TOKEN": "a",
    "CODEINFO_MCP_TOKEN": "b",
}


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "::1"])
def test_loopback_needs_nothing(address: str) -> None:
    check_exposure(Knobs.read({"CODEINFO_BIND": address}))


@pytest.mark.parametrize("missing", GUARDS)
def test_any_other_address_needs_every_guard(missing: str) -> None:
    known = {name: value for name, value in GUARDS.items() if name != missing}
    with pytest.raises(ImproperlyConfigured, match=missing):
        check_exposure(Knobs.read({"CODEINFO_BIND": "0.0.0.0", **known}))


def test_all_guards_or_an_explicit_word_are_enough() -> None:
    check_exposure(Knobs.read({"CODEINFO_BIND": "0.0.0.0", **GUARDS}))
    check_exposure(Knobs.read({"CODEINFO_BIND": "0.0.0.0", "CODEINFO_ALLOW_OPEN_ACCESS": "true"}))


def test_the_bound_address_is_a_host_we_answer_to() -> None:
    known = Knobs.read({"CODEINFO_BIND": "10.0.0.5", "CODEINFO_ALLOWED_HOSTS": "code.example"})
    assert {"10.0.0.5", "code.example", "localhost"} <= set(allowed_hosts(known))
    assert "0.0.0.0" not in allowed_hosts(Knobs.read({"CODEINFO_BIND": "0.0.0.0"}))

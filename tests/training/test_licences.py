"""Licences that allow training, in the forms of each registry."""

import email

import pytest

from training.licences import DebianCopyright, is_permissive, of_npm, of_wheel


@pytest.mark.parametrize(
    ("stated", "allowed"),
    [
        ("MIT", True),
        ("MIT License", True),
        ("Expat", True),
        ("BSD", True),
        ("BSD-3-Clause", True),
        ("3-Clause BSD License", True),
        ("Apache Software License", True),
        ("Apache License, Version 2.0", True),
        ("Apache-2.0", True),
        ("ISC License (ISCL)", True),
        ("Python Software Foundation License", True),
        ("PSF-2.0", True),
        ("Zlib", True),
        ("The Unlicense (Unlicense)", True),
        ("CC0-1.0", True),
        ("BSL-1.0", True),
        ("MIT OR GPL-2.0-or-later", True),
        ("GPL-2.0 OR MIT", True),
        ("MIT/Apache-2.0", True),
        ("Apache-2.0 AND MIT", True),
        ("(MIT AND BSD-3-Clause) OR LGPL-2.1", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("MIT AND GPL-3.0", False),
        ("MIT AND (GPL-3.0 OR LGPL-3.0)", False),
        ("Expat, and GPL-1+ or Artistic", False),
        ("GPL-2+", False),
        ("LGPL-2.1", False),
        ("MPL-2.0", False),
        ("AGPL-3.0-only", False),
        ("BUSL-1.1", False),
        ("EPL-2.0", False),
        ("CC-BY-SA-4.0", False),
        ("SEE LICENSE IN LICENSE.md", False),
        ("Other/Proprietary License", False),
        ("not MIT", False),
        ("", False),
    ],
)
def test_licences_are_classified(stated: str, allowed: bool) -> None:
    assert is_permissive(stated) is allowed


def test_a_wheel_has_an_expression_or_classifiers_or_a_short_text() -> None:
    def stated(text: str) -> str:
        return of_wheel(email.message_from_string(text))

    assert stated("License-Expression: MIT\nLicense: GPL\n") == "MIT"
    classifiers = (
        "Classifier: License :: OSI Approved :: MIT License\n"
        "Classifier: License :: OSI Approved :: GNU General Public License v3 (GPLv3)\n"
    )
    assert not is_permissive(stated(classifiers))
    assert stated("Classifier: License :: OSI Approved\nLicense: BSD-3-Clause\n") == "BSD-3-Clause"
    assert stated("Name: nothing-said\n") == ""


def test_npm_packages_have_a_text_an_object_or_a_choice() -> None:
    assert of_npm({"license": "ISC"}) == "ISC"
    assert of_npm({"license": {"type": "MIT"}}) == "MIT"
    assert of_npm({"licenses": [{"type": "GPL-2.0"}, {"type": "MIT"}]}) == "GPL-2.0 OR MIT"
    assert of_npm({}) == ""


COPYRIGHT = """Format: https://example.org/copyright-format/1.0/

Files: *
Copyright: 2020 Someone
License: Expat

Files: contrib/* tools/make.c
Copyright: 2020 Someone
License: GPL-2+

Files: debian/*
Copyright: 2021 Packager
License: GPL-3+

License: Expat
 Permission is hereby granted.
"""


def test_a_debian_package_has_the_licence_of_each_file() -> None:
    rules = DebianCopyright(COPYRIGHT)

    assert rules.of("src/a.c") == "Expat"
    assert rules.of("contrib/deep/b.c") == rules.of("tools/make.c") == "GPL-2+"
    assert rules.whole() == "Expat AND GPL-2+"
    assert DebianCopyright("free text, no form").whole() == ""

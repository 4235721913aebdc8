"""Static files: found in every app, typed, compressed, cached, and never a door to others."""

import gzip
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import brotli
import pytest
from channels.testing import HttpCommunicator
from django.templatetags.static import static

from apps.core.http.ports import nothing_here
from apps.core.http.static_files import WithStaticFiles
from tests.house.sources import HOME
from tests.support.ingested import write_files

application = WithStaticFiles(nothing_here)
UNPACK = {"br": brotli.decompress, "gzip": gzip.decompress, None: bytes}


async def fetch(path: str, method: str = "GET", **headers: str) -> dict[str, Any]:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    answer = await HttpCommunicator(
        application, method, path, headers=[(b"host", b"localhost"), *pairs]
    ).get_response()
    return answer | {"headers": {k.decode(): v.decode() for k, v in answer["headers"]}}


async def text(path: str) -> str:
    body: bytes = (await fetch(path))["body"]
    return body.decode()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/static/css/tokens.css", "text/css"),
        ("/static/js/app.js", "text/javascript"),
        ("/static/django_htmx/htmx-2.min.js", "text/javascript"),
        ("/static/admin/css/base.css", "text/css"),
        ("/static/admin/img/icon-yes.svg", "image/svg+xml"),
    ],
)
async def test_files_of_the_project_and_of_apps_are_served_with_their_type(
    path: str, kind: str
) -> None:
    answer = await fetch(path)
    headers = answer["headers"]
    assert answer["status"] == 200 and answer["body"]
    assert headers["content-type"] == f"{kind}; charset=utf-8"
    assert headers["x-content-type-options"] == "nosniff"
    # Without the hash in its name, a file is asked for again.
    assert headers["cache-control"] == "no-cache"


async def test_pages_name_files_that_are_kept_for_good() -> None:
    address = static("js/app.js")
    assert re.fullmatch(r"/static/js/app\.[0-9a-f]{12}\.js", address)
    answer = await fetch(address)
    assert "immutable" in answer["headers"]["cache-control"]
    assert answer["body"] == (await fetch("/static/js/app.js"))["body"]


async def test_an_unchanged_file_is_not_sent_again() -> None:
    first = await fetch("/static/css/tokens.css")
    tag = first["headers"]["etag"]
    cached = await fetch("/static/css/tokens.css", if_none_match=tag)
    assert (cached["status"], cached["body"]) == (304, b"")
    # As a proxy in between that compresses, too, gives it back.
    weak = await fetch("/static/css/tokens.css", if_none_match=f'"other", W/{tag}')
    assert weak["status"] == 304
    packed = await fetch("/static/css/tokens.css", if_none_match=tag, accept_encoding="br")
    assert packed["status"] == 200  # another body


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, deflate, br, zstd", "br"),
        ("gzip", "gzip"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("GZIP ; Q=0.000, *", None),
        ("deflate", None),
        ("", None),
    ],
)
async def test_a_text_is_compressed_as_the_browser_accepts(
    accepted: str, encoding: str | None
) -> None:
    answer = await fetch("/static/css/site.css", accept_encoding=accepted)
    headers = answer["headers"]
    assert headers.get("content-encoding") == encoding
    assert headers["vary"] == "Accept-Encoding"
    assert int(headers["content-length"]) == len(answer["body"])
    plain = (await fetch("/static/css/site.css"))["body"]
    assert UNPACK[encoding](answer["body"]) == plain
    assert encoding is None or len(answer["body"]) < len(plain) / 4


async def test_head_has_no_body_and_other_methods_are_refused() -> None:
    answer = await fetch("/static/js/app.js", "HEAD")
    assert answer["status"] == 200 and int(answer["headers"]["content-length"]) > 0
    assert answer["body"] == b""
    refused = await fetch("/static/js/app.js", "POST")
    assert (refused["status"], refused["headers"]["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "name",
    [
        "nothing.css",
        "nothing.0123456789ab.css",
        "../manage.py",
        "%2e%2e/manage.py",
        "css/../css/tokens.css",
        "css//tokens.css",
        "/etc/hostname",
        "css",
        "css/\0.css",
        "",
    ],
)
async def test_everything_else_is_passed_on(name: str) -> None:
    assert (await fetch(f"/static/{name}"))["status"] == 404


async def test_a_script_has_its_modules_in_it_and_none_twice() -> None:
    app, chat, agents = [await text(f"/static/js/{name}.js") for name in ("app", "chat", "agents")]
    modules = [re.findall(r"^// (js/\S+)$", script, re.M) for script in (app, chat, agents)]
    assert modules[0][-1] == "js/app.js" and "js/keys.js" in modules[0]
    assert modules[1][-1] == "js/chat.js" and "js/chat/stream.js" in modules[1]
    assert modules[2] == ["js/agents.js"]
    assert not set(modules[0]) & set(modules[1])
    assert re.findall(r"^ *// *(.*)$", app, re.M) == modules[0], "comments are not sent"
    # What another file has is imported from the address that pages name, so that it runs once.
    assert f'}} from "{static("js/app.js")}";' in chat
    assert f'import {{ js_chat_stream_js }} from "{static("js/chat.js")}";' in agents


async def test_each_of_our_stylesheets_and_scripts_can_be_joined() -> None:
    for file in (HOME / "static").glob("*s/*.*s"):
        name = file.relative_to(HOME / "static")
        assert not re.search(r'^@import|^import "\.', await text(f"/static/{name}"), re.M), name


async def test_a_stylesheet_names_pictures_by_their_content() -> None:
    sheet = await text("/static/admin/css/base.css")
    (picture,) = set(re.findall(r'url\("(/static/admin/img/icon-yes\.\w+\.svg)"\)', sheet))
    assert "immutable" in (await fetch(picture))["headers"]["cache-control"]


@pytest.fixture
def checkout(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """The static folder of a project with two scripts and two stylesheets."""
    settings.STATICFILES_DIRS = [tmp_path]
    shared = {"js/app.js": "", "js/chat.js": ""}
    yield write_files(
        tmp_path,
        shared
        | {
            "js/edited.js": 'import { one } from "./part.js";\n\nconsole.log(one);\n',
            "js/part.js": "export const one = 1;\n",
            "css/edited.css": '@import "part.css";\n',
            "css/part.css": "a { color: red; }\n",
        },
    )
    # What was read of it is not current from now on.
    shutil.rmtree(tmp_path)


@pytest.mark.parametrize(
    ("name", "part", "new"),
    [
        ("js/edited.js", "js/part.js", "export const one = 12;\n"),
        ("css/edited.css", "css/part.css", "a { color: blue; }\n"),
    ],
)
async def test_an_edit_is_served_at_once(checkout: Path, name: str, part: str, new: str) -> None:
    before = static(name)
    assert "immutable" in (await fetch(before))["headers"]["cache-control"]
    (checkout / part).write_text(new)
    after = static(name)
    assert after != before
    answer = await fetch(after, accept_encoding="br")
    assert "immutable" in answer["headers"]["cache-control"]
    assert new.removeprefix("export ").strip() in brotli.decompress(answer["body"]).decode()
    # A page that was loaded before it gets the new file, and does not keep it by the old name.
    late = await fetch(before, accept_encoding="br")
    assert (late["body"], late["headers"]["cache-control"]) == (answer["body"], "no-cache")


async def test_a_file_that_was_removed_is_not_served(checkout: Path) -> None:
    address = static("css/part.css")
    (checkout / "css" / "part.css").unlink()
    assert (await fetch(address))["status"] == 404
    # The stylesheet that needs it is not served in part.
    assert (await fetch("/static/css/edited.css"))["status"] == 404


@pytest.mark.parametrize(
    "line", ["export default 1;", "export { one };", 'import * from "./x.js";']
)
def test_a_form_that_cannot_be_joined_is_named(checkout: Path, line: str) -> None:
    (checkout / "js" / "part.js").write_text(f"const one = 1;\n{line}\n")
    with pytest.raises(ValueError, match=re.escape(f"js/part.js cannot be joined: {line}")):
        static("js/edited.js")

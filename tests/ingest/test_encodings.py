"""Files that are not UTF-8: search, Grep, ReadFile and the viewer show their text."""

import codecs
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.code.encodings import guesses
from apps.index.models import SourceFile
from tests.support.following import fill_chroma
from tests.support.ingested import ingest, run_ingest, write_files
from tests.support.verification import verify

__all__ = ["fill_chroma"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

Post = Callable[..., dict[str, Any]]

RUSSIAN = "# Расчёт стоимости заказа\ndef order_ru(a):\n    return a\n"
CHINESE = '# 计算订单总价\ndef order_total(items):\n    """返回未来函数的价格"""\n'
JAPANESE = "// 在庫を確認する関数\nint checkStock(int id) {\n    // 未来関数は禁止\n}\n"
KOREAN = "# 주문을 취소하고 환불한다\ndef cancel(order):\n    return order\n"
TAIWANESE = "# 根據客戶等級計算訂單折扣\ndef discount(order):\n    return order\n"
GERMAN = "# Größe der Straße berechnen\ndef de_size(a):\n    return a\n"
FRENCH = "# Vérifie l'accès à la réponse\ndef fr_access(a):\n    return a\n"
BOPOMOFO = '// 例如 "ㄇㄚ" 可能是 "嗎" 或 "媽"\nint reading(int key) {\n    return key;\n}\n'
SHARP = "class NoBom { int GetNoBom() { return 1; } }\n// Preis für Größe\n"

POLISH = "# Określa, czy użytkownik może się zalogować\ndef may_log_in(a):\n    return a\n"
HEBREW = "# מחשב את מחיר ההזמנה של הלקוחות הרשומים במערכת\ndef price_he(a):\n    return a\n"
ARABIC = "# حساب سعر الطلب قبل إرسال الفاتورة إلى العميل\ndef price_ar(a):\n    return a\n"
THAI = "# คำนวณราคาสินค้าก่อนส่งให้ลูกค้า\ndef price_th(a):\n    return a\n"
TURKISH = "# Siparişin fiyatını müşteri için hesaplar, başarısız olursa sıfır\nx = 1\n"
GREEK = "# Υπολογίζει την τιμή της παραγγελίας πριν από την αποστολή\nx = 1\n"

# Name of the file → its text, its encoding, a text of it to look for.
FILES = {
    "cp1251.py": (RUSSIAN, "cp1251", "стоимости"),
    "koi8.py": (RUSSIAN, "koi8-r", "стоимости"),
    "gbk.py": (CHINESE, "gbk", "订单总价"),
    "sjis.c": (JAPANESE, "cp932", "未来関数"),
    "euc_jp.c": (JAPANESE, "euc_jp", "未来関数"),
    "big5.py": (TAIWANESE, "big5", "訂單折扣"),
    "euc_kr.py": (KOREAN, "euc_kr", "취소하고"),
    "cp1252.py": (GERMAN, "cp1252", "Straße"),
    "latin_1.py": (FRENCH, "latin-1", "réponse"),
    "le.cs": (SHARP, "utf-16-le", "Größe"),
    "be.cs": (SHARP, "utf-16-be", "Größe"),
    "le_russian.py": (RUSSIAN, "utf-16-le", "стоимости"),
    "be_russian.py": (RUSSIAN, "utf-16-be", "стоимости"),
    "le_ascii.py": ("def ascii_only(a):\n    return a\n", "utf-16-le", "ascii_only"),
    "two_characters.java": ("/**\n * 处理 404\n */\nclass NotFound {}\n", "gbk", "处理"),
    "one_letter.php": ("<?php // rien à tester\nfunction screen() {}\n", "cp1252", "rien à tester"),
    "bopomofo.c": (BOPOMOFO, "big5", "可能是"),
    "cp1250.py": (POLISH, "cp1250", "użytkownik"),
    "iso8859_2.py": (POLISH, "iso8859-2", "użytkownik"),
    "cp1254.py": (TURKISH, "cp1254", "başarısız"),
    "cp1253.py": (GREEK, "cp1253", "παραγγελίας"),
    "cp1255.py": (HEBREW, "cp1255", "הלקוחות"),
    "cp1256.py": (ARABIC, "cp1256", "الفاتورة"),
    "tis_620.py": (THAI, "tis-620", "สินค้า"),
    "iso8859_15.py": ("# Preis in € für die Größe\nx = 1\n", "iso8859-15", "Größe"),
    "mac_roman.py": (GERMAN, "mac-roman", "Straße"),
    "cp866.py": (RUSSIAN, "cp866", "стоимости"),
    "gb18030.py": (CHINESE + "# 𠮷野家订单\n", "gb18030", "𠮷野家"),
    "utf_32_le.py": (POLISH, "utf-32-le", "użytkownik"),
    "utf_32_be.py": (JAPANESE, "utf-32-be", "未来関数"),
    "utf8.py": (CHINESE, "utf-8", "订单总价"),
}


@pytest.fixture
def post(client: Client) -> Post:
    def send(tool: str, /, **body: Any) -> dict[str, Any]:
        response = client.post(f"/tools/{tool}", body, content_type="application/json")
        assert response.status_code == 200, response.content
        answer: dict[str, Any] = response.json()
        return answer

    return send


@pytest.fixture
def folder(tmp_path: Path, configure) -> Path:
    configure(ingest_base=(tmp_path,))
    return tmp_path / "scripts"


@pytest.mark.parametrize("name", FILES)
def test_each_door_shows_the_text(folder: Path, post: Post, client: Client, name: str) -> None:
    text, encoding, words = FILES[name]
    ingest(write_files(folder, {name: text.encode(encoding)}), "scripts")

    assert words in post("grep", pattern=words)["results"][0]["chunk"]
    assert words in post("vector-search", query=words)["results"][0]["chunk"]
    read = post("read-file", repository="scripts", path=name)
    assert read["results"][0]["chunk"].splitlines() == text.splitlines()
    assert words in client.get(f"/code/scripts/{name}").content.decode()


def test_files_of_several_encodings_are_found_in_one_folder(folder: Path, post: Post) -> None:
    files = {name: text.encode(encoding) for name, (text, encoding, _) in FILES.items()}
    ingest(write_files(folder, files), "scripts")
    for name, (_, _, words) in FILES.items():
        assert name in {row["relPath"] for row in post("grep", pattern=words)["results"]}
    assert run_ingest(folder, "scripts").message == "No changes detected"
    assert not [difference for difference in verify() if difference.kind != "orphan"]
    assert dict(SourceFile.objects.values_list("path", "encoding"))["utf8.py"] == ""


@pytest.mark.parametrize(
    "first",
    ["# -*- coding: euc-jp -*-", "# vim: set fileencoding=euc-jp :", "# coding=euc_jp"],
)
def test_a_file_may_declare_its_encoding(folder: Path, post: Post, first: str) -> None:
    text = f"{first}\n# 型\nx = 1\n"
    ingest(write_files(folder, {"declared.py": text.encode("euc_jp")}), "scripts")
    assert post("grep", pattern="型")["results"]


def test_what_several_files_are_in_decides_on_a_short_one(folder: Path, post: Post) -> None:
    files = {f"file_{n}.py": KOREAN.encode("euc_kr") + b"#%d\n" % n for n in range(4)}
    short = "# 액션\nx = 1\n".encode("euc_kr")
    assert guesses(short)[0] != "cp949"
    ingest(write_files(folder, files | {"a.py": short}), "scripts")
    assert post("grep", pattern="액션")["results"]


@pytest.mark.parametrize("comment", ["déjà vu", "¡Hola!", "è", "vår!", "señor"])
def test_a_short_comment_of_western_europe_is_read(folder: Path, post: Post, comment: str) -> None:
    ingest(write_files(folder, {"a.py": f"# {comment}\nx = 1\n".encode("latin-1")}), "scripts")
    assert post("grep", pattern=comment)["results"]


@pytest.mark.parametrize(
    "data",
    [
        "# -*- coding: cp1251 -*-\n# Größe 日本語\n".encode(),
        "# Größe, naïve, 日本語 ".encode() + b"\xff\n",
        codecs.BOM_UTF8 + "# Größe 日本語\n".encode(),
        codecs.BOM_UTF16_LE + "# Größe 日本語\n".encode("utf-16-le"),
    ],
    ids=["declares another one", "one damaged byte", "mark", "mark of UTF-16"],
)
def test_utf_8_and_marked_files_stay_as_they_are(folder: Path, post: Post, data: bytes) -> None:
    ingest(write_files(folder, {"a.py": data}), "scripts")
    assert post("grep", pattern="Größe.*日本語")["results"]


def test_binary_files_with_zeros_are_still_skipped(folder: Path) -> None:
    numbers = b"".join(n.to_bytes(2, "little") for n in range(0, 60_000, 7))
    ingest(write_files(folder, {"a.c": numbers, "b.py": "x = 1\n"}), "scripts")
    assert SourceFile.objects.get(path="a.c").skip_reason == "Binary"


def test_a_secret_in_utf_16_is_still_one(folder: Path) -> None:
    kind, line = "EC PRIVATE KEY", "MIIEpAIBAAKCAQEA7bq0h2v9s8Jx1f/3kQ+2ZyXwVuTsRqPoNmLkJiHgFeDcBa9"
    block = [f"-----BEGIN {kind}-----", line, line, line, f"-----END {kind}-----"]
    secret = "\n".join(["KEY = (", *block, ")"])
    write_files(folder, {"a.py": secret.encode("utf-16-le"), "b.py": "x = 1\n"})
    ingest(folder, "scripts")
    assert SourceFile.objects.get(path="a.py").skip_reason == "Secret"

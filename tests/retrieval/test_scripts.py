"""Questions and comments in other scripts than English."""

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.agents.tools import toolset
from tests.support.following import fill_chroma
from tests.support.ingested import ingest, write_files

__all__ = ["fill_chroma"]
pytestmark = [pytest.mark.django_db, pytest.mark.door]

Post = Callable[..., dict[str, Any]]

FILES = {
    "de.py": "# Größe der Straße berechnen\ndef de_size(a):\n    return a\n",
    "ja.py": (
        "# 在庫を確認する\ndef ja_stock(item):\n"
        '    """商品の在庫数を確認して返す。"""\n    return item.count\n'
    ),
    "ko.py": (
        "# 주문 취소 처리\ndef ko_cancel(order):\n"
        '    """고객의 주문을 취소하고 환불한다."""\n    return order.cancel()\n'
    ),
    "other.py": "def unrelated(x):\n    return x + 1\n",
    "ru.py": (
        "# Расчёт стоимости заказа\ndef ru_cost(order):\n"
        '    """Возвращает стоимость заказа со скидкой."""\n    return order.total\n'
    ),
    "th.py": "# คำนวณราคาสินค้าทั้งหมด\ndef th_price(items):\n    return sum(items)\n",
    "fr.py": "# Vérifie la réponse du serveur\ndef fr_check(reply):\n    return reply\n",
    "tr.py": "# Kullanıcı girişini İPTAL eder\ndef tr_cancel(user):\n    return user\n",
    "pl.py": "# Wysyła żądanie zapłaty\ndef pl_send(bill):\n    return bill\n",
    "zh.py": (
        "# 計算訂單的未來折扣\ndef zh_discount(order):\n"
        '    """根據客戶等級計算訂單折扣。"""\n    return order.total * 0.9\n'
    ),
}


@pytest.fixture
def post(client: Client, tmp_path: Path, configure) -> Post:
    configure(ingest_base=(tmp_path,))
    ingest(write_files(tmp_path / "shop", FILES), "shop")

    def send(tool: str, /, **body: Any) -> dict[str, Any]:
        response = client.post(f"/tools/{tool}", body, content_type="application/json")
        assert response.status_code == 200, response.content
        answer: dict[str, Any] = response.json()
        return answer

    return send


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("未來折扣", "zh.py"),
        ("訂單折扣怎麼計算", "zh.py"),
        ("在庫", "ja.py"),
        ("商品の在庫数はどこで確認しますか", "ja.py"),
        ("주문을 취소하는 곳", "ko.py"),
        ("расчет", "ru.py"),
        ("СТОИМОСТЬ", "ru.py"),
        ("ราคาสินค้า", "th.py"),
        ("groesse berechnen", "de.py"),
        ("STRASSE", "de.py"),
        ("reponse", "fr.py"),
        ("KULLANICI girisini iptal", "tr.py"),
        ("wysyla zaplaty", "pl.py"),
        (unicodedata.normalize("NFD", "réponse"), "fr.py"),
        ("未登録の在庫 取得はどこで行われますか？", "ja.py"),
    ],
)
def test_the_file_of_the_language_is_first(post: Post, query: str, path: str) -> None:
    matches = post("vector-search", query=query)["results"]
    assert matches and matches[0]["relPath"] == path, matches
    assert not matches[0].get("weak")


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("fixed", [True, False])
def test_grep_finds_texts_of_either_normal_form(
    client: Client, tmp_path: Path, configure, form: Any, fixed: bool
) -> None:
    configure(ingest_base=(tmp_path,))
    text = unicodedata.normalize(form, "# Vérifie la réponse\ndef résumé(): ...\n# reponse\n")
    name = unicodedata.normalize(form, "dossiers/réseau/café.py")
    ingest(write_files(tmp_path / "forms", {name: text, "other.py": text}), "forms")
    for typed in ("NFC", "NFD"):
        body = {"path": unicodedata.normalize(typed, "dossiers/réseau"), "fixed": fixed}
        body |= {"pattern": unicodedata.normalize(typed, "réponse"), "repository": "forms"}
        answer = client.post("/tools/grep", body, content_type="application/json").json()
        assert [(row["relPath"], row["startLine"]) for row in answer["results"]] == [(name, 1)]
        place = {"path": unicodedata.normalize(typed, "dossiers/réseau/café.py")}
        answer = client.post(
            "/tools/read-file", place | {"repository": "forms"}, content_type="application/json"
        ).json()
        assert answer["relPath"] == name
        place = {"name": unicodedata.normalize(typed, "résumé"), "repository": "forms"}
        answer = client.post(
            "/tools/symbol-definitions", place, content_type="application/json"
        ).json()
        assert {row["startLine"] for row in answer["results"]} == {2}


def test_an_empty_answer_says_what_to_try(post: Post) -> None:
    answer = post("vector-search", query="天気予報")
    assert answer["results"] == [] and answer["hint"].startswith("Not answerable in the language")
    answer = post("grep", pattern="天気予報")
    assert answer["results"] == [] and answer["hint"]


def test_words_that_no_file_has_find_nothing_sure(post: Post) -> None:
    assert all(match.get("weak") for match in post("vector-search", query="天気予報")["results"])


def test_a_question_in_another_language_counts_by_its_words_alone(post: Post) -> None:
    """The built-in model knows neither them nor their parts between accents."""
    for query in ("Où est vérifiée la réponse du serveur ?", "Wie wird die Strasse berechnen"):
        matches = post("vector-search", query=query)["results"]
        assert {match["matchedBy"] for match in matches} == {"words"}
    for query in ("where is the réponse of the server checked", "check DER reply"):
        matches = post("vector-search", query=query)["results"]
        assert matches[0]["matchedBy"] == "both"


@pytest.mark.parametrize(
    "query",
    [
        "naïve check reply",
        "São Paulo reply check",
        "von Kármán check reply",
        "el niño order cost",
        "µs order cost",
        "λ order cost",
        "crème brûlée order cost",
        "MIT von Neumann order cost",
        "check DER reply, EST",
        "Größe field of order",
        "handle 日本語 reply text",
        "parse `für` reply",
        "x² order cost",
    ],
)
def test_names_loanwords_and_signs_do_not_make_a_question_foreign(post: Post, query: str) -> None:
    matches = post("vector-search", query=query)["results"]
    assert {match["matchedBy"] for match in matches} & {"both", "vector"}, matches


@pytest.mark.parametrize(
    "query",
    [
        "¿Cómo funciona le reply?",
        "Wie funktioniert reply",
        "Где происходит reply?",
        "Hur fungerar förfrågningar för sökning reply",
        "HTTPAdapter 怎样重试 reply",
    ],
)
def test_a_question_with_few_words_of_another_language_is_foreign(post: Post, query: str) -> None:
    matches = post("vector-search", query=query)["results"]
    assert {match["matchedBy"] for match in matches} <= {"words"}, matches


@pytest.mark.parametrize("query", ["怎么处理退款？", "Où est gérée la réplication ?"])
def test_what_cannot_be_answered_in_the_language_of_the_question_says_so(
    client: Client, tmp_path: Path, configure, query: str
) -> None:
    configure(ingest_base=(tmp_path,))
    ingest(write_files(tmp_path / "english", {"refund.py": "def refund(order): ...\n"}), "english")
    answer = client.post(
        "/tools/vector-search", {"query": query}, content_type="application/json"
    ).json()
    assert all(match["weak"] for match in answer["results"])
    assert answer["hint"].startswith("Not answerable in the language of the question")
    answer = client.post(
        "/tools/context", {"question": query}, content_type="application/json"
    ).json()
    assert answer["hint"].startswith("Not answerable in the language of the question")
    page = client.get("/search", {"q": query, "mode": "meaning"}).content.decode()
    assert "Not answerable in the language of the question" in page
    (search,) = toolset((), ("VectorSearch",))
    assert search.quoted(search.run({"query": query}))["hint"] == answer["hint"]

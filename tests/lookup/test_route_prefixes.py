"""Routes whose prefix another line, another file or a class gives, at POST /tools/vector-search."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lookup.shaped import ask, unhurried
from tests.lookup.symbols.conftest import Post, post
from tests.support.ingested import ingested_once

__all__ = ["post", "unhurried"]

pytestmark = [pytest.mark.django_db, pytest.mark.door]

FASTAPI: dict[str, str | bytes] = {
    "app/__init__.py": "",
    "app/main.py": (
        "from fastapi import FastAPI\n\nfrom app.api import api_router\n\napp = FastAPI()\n"
        "app.include_router(api_router, prefix='/api')\n"
    ),
    "app/api.py": (
        "from fastapi import APIRouter, Depends\n\nfrom app import items\n"
        "from app.users import router as users_router\n\n"
        "api_router = APIRouter(\n    prefix='/v1',\n)\n"
        "api_router.include_router(\n    items.router, dependencies=[Depends(str)],"
        " prefix='/items'\n)\napi_router.include_router(users_router)\n"
    ),
    "app/items.py": (
        "from fastapi import APIRouter\n\nrouter = APIRouter()\nadmin = APIRouter()\n\n\n"
        "@router.get('/{number}')\ndef read_item(number):\n    return number\n\n\n"
        "@admin.get('/purge')\ndef purge_items():\n    return 0\n"
    ),
    "app/users.py": (
        "from fastapi import APIRouter\n\nrouter = APIRouter(prefix='/users', tags=['users'])\n\n\n"
        "@router.get('')\ndef list_users():\n    return []\n"
    ),
}
FLASK: dict[str, str | bytes] = {
    "site/__init__.py": (
        "from flask import Flask\n\n\ndef create_app():\n    app = Flask(__name__)\n"
        "    from . import auth, blog\n    app.register_blueprint(auth.bp, url_prefix='/account')\n"
        "    app.register_blueprint(blog.bp)\n    return app\n"
    ),
    "site/auth.py": (
        "from flask import Blueprint\n\nbp = Blueprint('auth', __name__, url_prefix='/auth')\n\n\n"
        "@bp.route('/login', methods=['POST'])\ndef log_in():\n    return ''\n"
    ),
    "site/blog.py": (
        "from flask import Blueprint\n\n"
        "bp = Blueprint(\n    'blog', __name__, url_prefix='/blog'\n)\n\n\n"
        "@bp.route('/posts', methods=['GET', 'POST'])\ndef list_posts():\n    return ''\n"
    ),
}
DJANGO: dict[str, str | bytes] = {
    "shop/__init__.py": "",
    "project/urls.py": (
        "from django.urls import include, path\n\n"
        "urlpatterns = [path('v3/', include('shop.urls'))]\n"
    ),
    "shop/urls.py": (
        "from django.urls import include, path\nfrom rest_framework import routers\n\n"
        "from shop import carts, views\n\nrouter = routers.DefaultRouter()\n"
        "router.register(r'orders', views.OrderViewSet)\n\n"
        "urlpatterns = [\n    path('rest/', include(router.urls)),\n"
        "    path('carts/', include(carts)),\n]\n"
    ),
    "shop/carts.py": (
        "from django.urls import path\n\nfrom shop import views\n\n"
        "urlpatterns = [path('open/', views.open_cart)]\n"
    ),
    "shop/views.py": "class OrderViewSet:\n    pass\n\n\ndef open_cart(request):\n    return 1\n",
}
EXPRESS: dict[str, str | bytes] = {
    "server.js": (
        "const express = require('express')\nconst users = require('./routes/users')\n"
        "import { orders } from './routes/orders'\n\nconst app = express()\n"
        "app.use('/api/users', auth, users)\napp.use('/api/orders', orders)\n"
        "app.use('/api/pets', require('./routes/pets'))\n"
    ),
    "routes/users.js": (
        "const router = require('express').Router()\nconst notes = require('./notes')\n\n"
        "router.get('/:id', showUser)\nrouter.use('/:id/notes', notes)\n\n"
        "function showUser(req, res) {}\nmodule.exports = router\n"
    ),
    "routes/notes.js": (
        "const router = require('express').Router()\nrouter.post('/fresh', addNote)\n\n"
        "function addNote(req, res) {}\nmodule.exports = router\n"
    ),
    "routes/orders.ts": (
        "import { Router } from 'express'\nexport const orders: Router = Router()\n"
        "orders.get('/late', lateOrders)\naxios.get('/orders/remote', show)\n\n"
        "function lateOrders(req, res) {}\n"
    ),
    "routes/pets.js": (
        "const { Router } = require('express')\nconst router = Router()\n"
        "router.get('/cats', listCats)\n\nfunction listCats(req, res) {}\nmodule.exports = router\n"
    ),
}
RAILS: dict[str, str | bytes] = {
    "config/routes.rb": (
        "Rails.application.routes.draw do\n  namespace :admin do\n    scope '/reports' do\n"
        "      get 'daily', to: 'reports#daily'\n    end\n    resources :boats do\n"
        "      resources :crews\n      member do\n        post :launch\n      end\n    end\n  end\n"
        "  scope module: 'plain' do\n    get 'ping', to: 'status#ping'\n  end\n"
        "  get 'about', to: 'pages#about'\nend\n"
    ),
    "app/controllers/status_controller.rb": (
        "class StatusController\n  def ping\n    head :ok\n  end\nend\n"
    ),
}
SPRING: dict[str, str | bytes] = {
    "TripController.java": (
        "import org.springframework.web.bind.annotation.*;\n\n@RestController\n"
        '@RequestMapping("/trips")\npublic class TripController {\n\n'
        '    @RequestMapping(value = "/old", method = RequestMethod.GET)\n'
        "    public String oldTrips() { return null; }\n\n"
        '    @GetMapping("/{id}")\n    public String showTrip(String id) { return id; }\n\n'
        "    @PostMapping\n    public String bookTrip() { return null; }\n}\n"
    ),
    "FareResource.java": (
        'import javax.ws.rs.*;\n\n@Path("/fares")\npublic class FareResource {\n\n    @GET\n'
        '    @Path("{zone}/day")\n    public String dayFare(String zone) { return zone; }\n}\n'
    ),
}
GO: dict[str, str | bytes] = {
    "main.go": (
        'package main\n\nimport "github.com/gin-gonic/gin"\n\nfunc routes(r *gin.Engine) {\n'
        '\tapi := r.Group("/api")\n\tv2 := api.Group("/v2")\n\tv2.GET("/ports", listPorts)\n'
        '\tr.GET("/health", showHealth)\n}\n\nfunc listPorts(c *gin.Context) {}\n\n'
        "func showHealth(c *gin.Context) {}\n"
    ),
}
RING: dict[str, str | bytes] = {
    "ring.py": (
        "from fastapi import APIRouter\n\n"
        + "".join(f"r{n} = APIRouter(prefix='/ring')\n" for n in range(40))
        + "".join(f"r{n}.include_router(r{m})\n" for n in range(40) for m in range(10))
        + "\n\n@r0.get('/end')\ndef end():\n    return 1\n"
    ),
}
REPOSITORIES = {
    "ring": RING,
    "fastapi": FASTAPI,
    "flask": FLASK,
    "django": DJANGO,
    "express": EXPRESS,
    "rails": RAILS,
    "spring": SPRING,
    "go": GO,
}


@pytest.fixture(scope="module", autouse=True)
def ingested(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("prefixes")))
    with ingested_once(django_db_blocker, base, REPOSITORIES):
        yield


@pytest.mark.parametrize(
    ("repository", "asked", "route", "handler"),
    [
        ("fastapi", "GET /api/v1/items/7", "GET /api/v1/items/{number}", "read_item"),
        ("fastapi", "/api/v1/users", "GET /api/v1/users", "list_users"),
        ("flask", "POST /account/login", "POST /account/login", "log_in"),
        ("flask", "POST /blog/posts", "/blog/posts", "list_posts"),
        ("django", "/v3/rest/orders", "/v3/rest/orders", "views.OrderViewSet"),
        ("django", "/v3/carts/open/", "/v3/carts/open/", "views.open_cart"),
        ("express", "GET /api/users/7", "GET /api/users/:id", "showUser"),
        ("express", "POST /api/users/7/notes/fresh", "POST /api/users/:id/notes/fresh", "addNote"),
        ("express", "/api/orders/late", "GET /api/orders/late", "lateOrders"),
        ("express", "/api/pets/cats", "GET /api/pets/cats", "listCats"),
        ("rails", "/admin/reports/daily", "GET /admin/reports/daily", "ReportsController#daily"),
        ("rails", "/admin/boats/7", "/admin/boats/:id", "BoatsController"),
        ("rails", "/admin/boats/7/crews", "/admin/boats/:id/crews", "CrewsController"),
        ("rails", "POST /admin/boats/7/launch", "POST /admin/boats/:id/launch", ""),
        ("rails", "/ping", "GET /ping", "StatusController#ping"),
        ("rails", "/about", "GET /about", "PagesController#about"),
        ("spring", "/trips/old", "GET /trips/old", "oldTrips"),
        ("spring", "GET /trips/7", "GET /trips/{id}", "showTrip"),
        ("spring", "POST /trips", "POST /trips", "bookTrip"),
        ("spring", "/fares/3/day", "GET /fares/{zone}/day", "dayFare"),
        ("go", "/api/v2/ports", "GET /api/v2/ports", "listPorts"),
        ("go", "/health", "GET /health", "showHealth"),
    ],
)
def test_the_whole_path_leads_to_what_serves_it(
    post: Post, repository: str, asked: str, route: str, handler: str
) -> None:
    answer = ask(post, f"Where is {asked} handled?", repository=repository)
    first = answer["rows"][0]
    assert (first["of"], first.get("symbol", "")) == (route, handler)
    assert first["certainty"] == "proven"


def test_a_prefix_is_that_of_one_router(post: Post) -> None:
    answer = ask(post, "Where is /api/v1/items/purge?", repository="fastapi")
    routes = [(r["of"], r["certainty"]) for r in answer["rows"] if r["kind"] == "route"]
    assert routes == [("GET /api/v1/items/{number}", "proven"), ("GET /purge", "possible")]


def test_the_controller_of_a_route_is_defined(post: Post) -> None:
    answer = ask(post, "Where is route /ping?", repository="rails")
    assert [row["symbol"] for row in answer["rows"] if row["kind"] == "definition"] == [
        "StatusController.ping"
    ]


def test_a_request_to_a_server_is_no_route(post: Post) -> None:
    assert ask(post, "Where is /orders/remote?", repository="express")["rows"] == []


def test_routers_that_mount_each_other_end(post: Post) -> None:
    answer = ask(post, f"Where is {'/ring' * 6}/end handled?", repository="ring")
    assert answer["rows"][0]["symbol"] == "end"


def test_routes_are_found_when_the_time_ends_with_their_prefixes(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    def facts(*arguments: object) -> None:
        monkeypatch.setattr("apps.lookup.deadline.Deadline.is_over", True)

    monkeypatch.setattr("apps.lookup.symbols.project.RootProject.facts", facts)
    answer = ask(post, "Where is /purge handled?", repository="fastapi")
    assert answer["rows"][0]["of"] == "GET /purge"

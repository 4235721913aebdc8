"""A repository in several languages for questions by shape."""

FILES: dict[str, str | bytes] = {
    "pyproject.toml": (
        '[project]\nname = "harbour"\n\n[project.scripts]\nharbour = "harbour.cli:main"\n\n'
        "[tool.harbour]\nMAX_BERTHS = 12\n"
    ),
    "package.json": '{\n  "name": "quay",\n  "scripts": {"start": "node web/server.js"}\n}\n',
    "Dockerfile": 'FROM python:3.12\nCMD ["harbour", "serve"]\n',
    "src/harbour/__init__.py": "",
    "src/harbour/cli.py": (
        "from harbour.crane import Crane\n\n\n"
        "def main() -> None:\n    serve()\n\n\n"
        'def serve() -> None:\n    """Serve ships."""\n    Crane().lift(3)\n'
    ),
    "src/harbour/crane.py": (
        "from harbour.settings import MAX_BERTHS\n\n\n"
        'class Machine:\n    """A machine of the harbour."""\n\n'
        "    def lift(self, tons: int) -> int:\n        raise NotImplementedError\n\n\n"
        "class Crane(Machine):\n"
        "    def lift(self, tons: int) -> int:\n        return weigh(tons) + MAX_BERTHS\n\n\n"
        "class Tall(Crane):\n    pass\n\n\n"
        'def weigh(tons: int) -> int:\n    """How heavy it is."""\n'
        '    if tons < 0:\n        raise ValueError("a load has no negative weight")\n'
        "    return tons\n"
    ),
    "src/harbour/settings.py": "MAX_BERTHS = 12\n",
    "src/harbour/urls.py": (
        "from django.urls import include, path\n\nfrom harbour import views\n\n"
        "urlpatterns = [\n    path('ships/<int:pk>/', views.show_ship),\n"
        "    path('api/', include('harbour.api_urls')),\n]\n"
    ),
    "src/harbour/api_urls.py": (
        "from django.urls import path\n\nfrom harbour import views\n\n"
        "urlpatterns = [path('berths/', views.list_berths)]\n"
    ),
    "src/harbour/views.py": (
        "def show_ship(request, pk):\n    return pk\n\n\ndef list_berths(request):\n    return []\n"
    ),
    "tests/test_crane.py": (
        "from harbour.crane import Crane, weigh\n\n\n"
        "def test_weigh():\n    assert weigh(3) == 3\n    assert weigh(4) == 4\n\n\n"
        "def test_a_crane_lifts():\n    assert Crane().lift(1) == 13\n"
    ),
    "src/harbour/pier.py": (
        "from fastapi import APIRouter\n\nrouter = APIRouter()\n\n\n"
        "@router.get('/anchors/{number}')\ndef show_anchor(number):\n    return number\n"
    ),
    "src/harbour/anchors.py": (
        'class Anchors:\n    """Routes of anchors.\n\n    router = APIRouter()\n\n'
        "    @router.get('/port/anchors/{number}')\n    def example(number): ...\n"
        '    """\n'
    ),
    "tests/test_pier.py": (
        "from fastapi import FastAPI\n\napp = FastAPI()\n@app.get('/port/anchors/{number}')\n"
        "def test_anchor(number):\n    return number\n"
    ),
    "web/server.js": (
        "const app = require('express')()\n\n"
        "app.get('/tides/:day', showTide)\n\nfunction showTide(req, res) {\n  res.send('low')\n}\n"
    ),
    "lib/buoy.rb": (
        "class Buoy\n  def ring(times)\n    times\n  end\nend\n\n"
        "class Bell < Buoy\nend\n\ndef storm(buoy)\n  buoy.ring(3)\nend\n"
    ),
    "web/yard.js": (
        "const router = require('express').Router()\n\n"
        "router.get('/yards/:id', checkBadge, validate([rules]), showYard)\n"
        "router.post('/yards', checkBadge, (req, res) => {\n  res.send(202)\n})\n\n"
        "function showYard(req, res) {\n  res.send(req.params.id)\n}\n\n"
        "function checkBadge(req, res, next) {\n  next()\n}\n"
    ),
    "src/harbour/buoys.py": (
        "from fastapi import APIRouter\n\nrouter = APIRouter()\n\n\n"
        "@router.post(\n    '/buoys/{number}/light',\n    responses={\n"
        "        200: {\n            'content': {\n                'text/plain': {\n"
        "                    'schema': {'type': 'string'},\n                },\n"
        "            },\n        },\n    },\n)\n"
        "async def light_buoy(number):\n    return number\n"
    ),
    "hull.h": (
        "#ifndef HARBOUR_HULL_H_\n#define HARBOUR_HULL_H_\n\nnamespace harbour {\n\n"
        "class Hull {\n public:\n  int Depth() const;\n};\n\n}  // namespace harbour\n\n#endif\n"
    ),
    "hull.cc": (
        '#include "hull.h"\n\nnamespace harbour {\n\n'
        "int Hull::Depth() const {\n  return 3;\n}\n\n"
        "int Draught(const Hull& hull) {\n  return hull.Depth();\n}\n\n}  // namespace harbour\n"
    ),
    "bilge.h": "class Bilge {\n  class Keel {};\n};\n",
    "keel.h": "class Keel {};\n",
    "steel.cc": '#include "bilge.h"\n#include "keel.h"\n\nclass Steel : public Keel {};\n',
    "src/harbour/api.py": "from harbour.views import (\n    list_berths,\n    show_ship,\n)\n",
    "src/harbour/depth.py": "import os\n\n\ndef depth():\n    return os.getenv('MOORING_DEPTH')\n",
    "src/harbour/cargo.py": (
        "from pydantic import BaseModel\n\n\nclass Cargo(BaseModel):\n    tons: int\n\n\n"
        "class Grain(Cargo):\n    pass\n"
    ),
    "Yacht.cs": "public class Yacht : ApiController\n{\n}\n",
    "anchor.sh": "echo $MOORING_LIMIT\n",
    "go.mod": "module quay\n",
    "quay.go": (
        "package main\n\ntype Moorer interface {\n\tMoor(name string) error\n}\n\n"
        "type Ship struct{}\n\nfunc (s Ship) Moor(name string) error { return nil }\n\n"
        'func main() { Ship{}.Moor("a") }\n'
    ),
    "lamp.rs": (
        "pub trait Light {\n    fn shine(&self) -> u32;\n}\n\npub struct Lamp;\n\n"
        "impl Light for Lamp {\n    fn shine(&self) -> u32 {\n        3\n    }\n}\n"
    ),
    "Tug.cs": (
        "namespace Harbour\n{\n    public interface ITow { void Tow(int tons); }\n\n"
        "    public class Tug : ITow\n    {\n        public void Tow(int tons) { }\n    }\n}\n"
    ),
}

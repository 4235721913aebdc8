"""The call graph of Python."""

from tests.code.callgraph.edges import edges, imported


def test_imports_are_followed_through_packages_and_other_names() -> None:
    found = edges(
        {
            "app/__init__.py": "from .core import run as start\nfrom .shapes import *\n",
            "app/core.py": "def run():\n    pass\n",
            "app/shapes.py": "class Circle:\n    def area(self):\n        pass\n",
            "main.py": """\
                import app
                import app.core as core
                from app import start, Circle

                def main():
                    start()
                    app.start()
                    core.run()
                    Circle().area()
                """,
        }
    )
    assert found == [
        "main -> app/core.py:run",
        "main -> app/core.py:run",
        "main -> app/core.py:run",
        "main -> app/shapes.py:Circle",
        "main -> app/shapes.py:Circle.area",
    ]


def test_methods_are_looked_up_along_the_bases() -> None:
    found = edges(
        {
            "a.py": """\
                class Base:
                    def one(self):
                        return self.two()

                    def two(self):
                        pass

                    @classmethod
                    def make(cls):
                        return cls()

                    @property
                    def other(self) -> "Base":
                        return self

                class Child(Base):
                    def two(self):
                        super().two()
                        self.one()
                        self.other.two()

                def use():
                    Child.make().two()
                """
        }
    )
    assert found == [
        "Base.one -> Base.two",
        "Base.make -> Base",
        "Child.two -> Base.two",
        "Child.two -> Base.one",
        "Child.two -> Base.two",
        "use -> Base.make",
        "use -> Child.two",
    ]


def test_objects_are_known_by_assignments_annotations_and_attributes() -> None:
    found = edges(
        {
            "a.py": """\
                class Engine:
                    def go(self): pass

                class Car:
                    spare: Engine | None = None

                    def __init__(self, engines: list[Engine]):
                        self.engine = Engine()
                        self.engines = engines

                    def drive(self, other: "Engine"):
                        self.engine.go()
                        self.spare.go()
                        other.go()
                        for each in self.engines:
                            each.go()

                def build(value):
                    engine = value or Engine()
                    engine = Engine()
                    engine.go()
                    with open("x") as file:
                        file.go()
                """
        }
    )
    assert found == [
        "Car.__init__ -> Engine",
        *["Car.drive -> Engine.go"] * 4,
        *["build -> Engine"] * 2,
        "build -> Engine.go",
    ]


def test_local_names_hide_outer_ones() -> None:
    found = edges(
        {
            "a.py": """\
                def run(): pass

                def parameter(run):
                    run()

                def inner():
                    def run(): pass
                    run()

                def comprehension(things):
                    return [run() for run in things]

                def builtin():
                    len([])
                    "".join([])
                """
        }
    )
    assert found == ["inner -> inner.run"]


def test_an_object_of_unknown_type_makes_a_call_possible_if_few_methods_have_the_name() -> None:
    few = "class A:\n    def unfold(self): pass\n\ndef use(x):\n    x.unfold()\n    unfold()\n"
    assert edges({"a.py": few}) == ["use -> ? A.unfold"]
    many = "".join(f"class A{n}:\n    def unfold(self): pass\n" for n in range(9))
    assert edges({"a.py": many + "def use(x):\n    x.unfold()\n"}) == []
    common = "class A:\n    def get(self): pass\n\ndef use(x):\n    x.get()\n"
    assert edges({"a.py": common}) == [], "a dictionary has it too"


def test_the_standard_library_is_not_taken_for_a_file_of_the_package() -> None:
    found = edges(
        {
            "app/__init__.py": "",
            "app/json.py": "import json\n\ndef dumps(x):\n    return json.dumps(x)\n",
        }
    )
    assert found == []


def test_imports_in_a_circle_end() -> None:
    found = edges(
        {
            "a.py": "from b import one\nfrom c import *\n\ndef use():\n    one()\n    two()\n",
            "b.py": "from a import one\n",
            "c.py": "from d import *\n",
            "d.py": "from c import *\n\ndef two(): pass\n",
        }
    )
    assert found == ["use -> d.py:two"]


def test_import_targets_are_files() -> None:
    files = {
        "src/app/__init__.py": "",
        "src/app/models.py": "",
        "src/app/views/__init__.py": "",
        "src/app/views/home.py": (
            "import os\nimport app.models\nfrom . import missing\nfrom .. import models\n"
            "from ..models import Ship\n"
        ),
    }
    assert imported(files, "src/app/views/home.py") == {
        "os": [],
        "app": ["src/app/__init__.py"],
        "app.models": ["src/app/models.py"],
        ". missing": ["src/app/views/__init__.py"],
        ".. models": ["src/app/models.py"],
        "..models Ship": ["src/app/models.py"],
    }


def test_a_base_that_is_one_of_several_classes_may_be_each() -> None:
    """Which one came first differed from process to process."""
    found = edges(
        {
            "a.py": """
            class A:
                def run(self): ...
            class B:
                def run(self): ...
            def base():
                if fast:
                    return A
                return B
            class C(base()): ...
            def main(c: C):
                c.run()
            """
        }
    )
    assert found == ["C -> base", "main -> ? A.run", "main -> ? B.run"]

"""What holds for the packages as a whole: which file may import which, what importing does, what no file contains."""

import ast
import importlib.metadata
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]

# Each file of azjax imports only files before it. `__init__` is what `import azjax` runs; the servers of engines'
# protocols and the web page stand beside the command line and are imported by it.
ORDER = """
    __init__ fields config presets accelerators launch types boards network agents search charts openings selfplay
    targets replay learner step hosts interrupt expansion solver endgame oracle players thinker outside
    connect_four_player engines opponents referee arena rating sprt tournament tables report curves manifest checkpoint
    rows rundir export metrics resume progress evaluation plan train line play widget analysis tactics perfect scaling
    book generations bench servers web cli connect_four_program __main__
""".split()

# A program of its own, which talks to azjax over pipes and may import one of them.
PROGRAMS = {"azjax/connect_four_program.py"}
GPL = {"bitbully", "bitbully_core", "chess", "cshogi", "pyffish", "shogi"}
RUNS_DATA_AS_CODE = {"cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}
GONE_FROM_JAX = {"device_put_replicated", "pmap", "tree_map"}


def sources(package: str) -> dict[Path, str]:
    files = {path.relative_to(ROOT): path.read_text("utf-8") for path in sorted((ROOT / package).rglob("*.py"))}
    assert files, f"{package} has no files"
    return files


def module_name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path, source: str) -> Iterator[str]:
    """Every imported name in full, wherever in the file it is imported: `from . import a` in azjax/b.py is azjax.a."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(level=0):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            case ast.ImportFrom():
                package = path.parts[: len(path.parts) - node.level]
                module = [node.module] if node.module else []
                yield from (".".join([*package, *module, alias.name]) for alias in node.names)
            case ast.Call(args=[ast.Constant(value=str(name)), *_]) if ast.unparse(node.func).endswith("import_module"):
                yield name


def outside_imports(path: Path, source: str) -> set[str]:
    return {name.split(".")[0] for name in imports(path, source)}


def place(name: str) -> str:
    """The entry of ORDER that a full name of azjax belongs to."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ORDER else "__init__"


def imports_out_of_order(path: Path, source: str) -> list[str]:
    """The imports of a file of azjax that come later in ORDER than the file."""
    own = ORDER.index(path.with_suffix("").parts[1])
    return [
        f"{path} imports {name}"
        for name in imports(path, source)
        if name.split(".")[0] == "azjax" and ORDER.index(place(name)) > own
    ]


def unsafe(path: Path, source: str) -> list[str]:
    """What runs data as code, and calls that newer JAX no longer has."""
    found = [f"{path} imports {name}" for name in sorted(outside_imports(path, source) & RUNS_DATA_AS_CODE)]
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="eval" | "exec" as name)):
                found.append(f"{path}:{node.lineno} calls {name}")
            case ast.keyword(arg="allow_pickle", value=value) if ast.unparse(value) != "False":
                found.append(f"{path}:{node.lineno} allows pickles")
            case ast.Attribute(value=ast.Name(id="jax"), attr=name) if name in GONE_FROM_JAX:
                found.append(f"{path}:{node.lineno} uses jax.{name}")
            case ast.ImportFrom(module="jax") if GONE_FROM_JAX & {alias.name for alias in node.names}:
                found.append(f"{path}:{node.lineno} imports what JAX no longer has")
    return found


def python(code: str, *args: str) -> str:
    """Runs code in a fresh interpreter and returns its stdout."""
    done = subprocess.run([sys.executable, "-c", code, *args], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_file_of_azjax_has_its_place_in_the_order():
    assert {path.with_suffix("").parts[1] for path in sources("azjax")} <= set(ORDER)


def test_imports_of_azjax_go_one_way():
    assert [fault for path, source in sources("azjax").items() for fault in imports_out_of_order(path, source)] == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("azjax/step.py", "import azjax.train"),
        ("azjax/step.py", "from azjax import train"),
        ("azjax/step.py", "from azjax.train import run"),
        ("azjax/step.py", "from . import train"),
        ("azjax/step.py", "def later():\n    from .train import run"),
        ("azjax/step.py", "import_module('azjax.train')"),
        ("azjax/search/tree.py", "from ..train import run"),
        ("azjax/search/__init__.py", "from ..train import run"),
        ("azjax/engines/uci.py", "import azjax.cli"),
        ("azjax/__init__.py", "from azjax.config import RunConfig"),
    ],
)
def test_an_import_against_the_order_is_seen(path, source):
    assert len(imports_out_of_order(Path(path), source)) == 1


def test_an_import_along_the_order_passes():
    source = (
        "import azjax\nfrom azjax import __version__, step\nfrom . import search\nfrom envs import core\nimport jax"
    )
    assert imports_out_of_order(Path("azjax/train.py"), source) == []
    assert imports_out_of_order(Path("azjax/search/puct.py"), "from . import tree\nfrom .tree import Tree") == []


def test_games_never_import_azjax():
    assert [path for path, source in sources("envs").items() if "azjax" in outside_imports(path, source)] == []


@pytest.mark.parametrize(("package", "owner"), [("flax", "azjax/network"), ("orbax", "azjax/checkpoint.py")])
def test_one_file_alone_imports(package, owner):
    importers = {
        path.as_posix()
        for folder in ("azjax", "envs")
        for path, source in sources(folder).items()
        if package in outside_imports(path, source)
    }
    assert {path for path in importers if not path.startswith(owner)} == set()


@pytest.mark.parametrize("package", ["azjax", "envs", "experiments"])
def test_no_file_is_longer_than_400_lines(package):
    lengths = {str(path): len(source.splitlines()) for path, source in sources(package).items()}
    assert {path: length for path, length in lengths.items() if length > 400} == {}


@pytest.mark.parametrize("package", ["azjax", "envs"])
def test_no_file_runs_data_as_code_or_calls_what_jax_dropped(package):
    assert [fault for path, source in sources(package).items() for fault in unsafe(path, source)] == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "def later():\n    import cloudpickle as pickler",
        "eval('1')",
        "exec(text)",
        "np.load(path, allow_pickle=True)",
        "jax.pmap(f)",
        "jax.tree_map(f, tree)",
        "from jax import device_put_replicated",
    ],
)
def test_unsafe_code_is_seen(source):
    assert len(unsafe(Path("azjax/step.py"), source)) == 1


def test_safe_code_passes():
    assert unsafe(Path("azjax/step.py"), "model.eval()\nnp.load(p, allow_pickle=False)\njax.tree.map(f, t)") == []


@pytest.mark.parametrize("package", ["azjax", "envs"])
def test_no_file_imports_a_gpl_package(package):
    files = {path: source for path, source in sources(package).items() if path.as_posix() not in PROGRAMS}
    assert {str(path): found for path, source in files.items() if (found := outside_imports(path, source) & GPL)} == {}


@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_imports_a_program_of_its_own(program):
    name = module_name(Path(program))
    files = {**sources("azjax"), **sources("envs"), **sources("experiments")}
    assert [str(path) for path, source in files.items() if name in set(imports(path, source))] == []


def test_a_gpl_import_is_told_from_our_own_chess():
    assert outside_imports(Path("envs/own.py"), "from chess import Board") & GPL
    assert not outside_imports(Path("envs/own.py"), "from . import chess\nfrom envs.chess import Chess") & GPL


def test_no_runtime_dependency_is_under_the_gpl():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    waiting = [Requirement(line) for line in project["dependencies"] + project["optional-dependencies"]["play"]]
    licences: dict[str, str] = {}
    while waiting:
        wanted = waiting.pop()
        metadata = importlib.metadata.metadata(wanted.name)
        if wanted.name not in licences or wanted.extras:
            needed = [Requirement(line) for line in importlib.metadata.requires(wanted.name) or []]
            contexts = [{"extra": extra} for extra in wanted.extras or {""}]
            waiting += [r for r in needed if not r.marker or any(r.marker.evaluate(c) for c in contexts)]
        # Not the field `License`: some put the whole text there, and numpy's speaks of its compiler's exception.
        classifiers = [line for line in metadata.get_all("Classifier", []) if line.startswith("License ::")]
        licences[wanted.name] = "; ".join([metadata.get("License-Expression", ""), *classifiers])
    assert len(licences) > 30  # the walk went down to the dependencies of dependencies
    assert {name: licence for name, licence in licences.items() if "GPL" in licence} == {}


def test_importing_starts_no_backend():
    # pgx starts one when it is imported, so envs.pgx may do so; __main__ runs the command line.
    modules = [module_name(path) for package in ("azjax", "envs") for path in sources(package)]
    modules = [name for name in modules if name not in ("azjax.__main__", "envs.pgx")]
    code = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
import jax
jax.config.update("jax_num_cpu_devices", 3)  # refused once a backend has started
print(jax.device_count("cpu"))
"""
    assert python(code, *modules).split() == ["3"]


def test_packages_and_configuration_import_without_jax():
    modules = ["azjax", "envs", *(module_name(path) for path in sources("azjax") if path.stem == "config")]
    code = f"import sys, {', '.join(modules)}; print(sorted({{'jax', 'flax', 'orbax'}} & set(sys.modules)))"
    assert python(code).strip() == "[]"


COMMAND_LINES = [
    (["--help"], 0),
    (["train", "--help"], 0),
    (["tarin", "crosshair"], 2),
    (["train", "crosshiar"], 2),
    (["train", "crosshair", "--preset", "slow"], 2),
    (["train", "crosshair", "--search.simulations", "0"], 2),
    (["train", "crosshair", "--search.simulations", "many"], 2),
    (["train", "crosshair", "--search.no-such-field", "1"], 2),
]


@pytest.mark.parametrize(("argv", "status"), COMMAND_LINES)
def test_help_and_input_errors_come_before_jax(argv, status):
    code = """
import json, sys
from azjax.cli import main
sys.argv = ["azjax", *sys.argv[1:]]
try:
    status = main()
except SystemExit as stop:
    status = stop.code
print(json.dumps([status or 0, sorted({"jax", "flax"} & set(sys.modules))]))
"""
    assert json.loads(python(code, *argv).splitlines()[-1]) == [status, []]

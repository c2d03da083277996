"""A type name has one meaning in the whole package, and nothing is defined that nothing uses."""

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "teraflock"

USED_ELSEWHERE = {
    "DENY": "a rule without it allows",
    "capture_signals": "uvicorn calls it",
    "context_class": "click reads it",
    "get_command": "click calls it",
    "is_capturing": "PyTorch calls it while a script is traced",
    "FOREVER": "tests cause faults with it",
    "OPTIONAL": "a test compares it with the documentation",
    "SPOKEN": "a test compares it with the translations",
    "intervals_of": "tests read the meter with it",
    "wait_until_gone": "for users of the client",
}
CALLED_ELSEWHERE = {
    "TraceReading": "found by the name of the operation",
    "Trouble": "tests and rehearsals cause faults of the simulated engine with it",
    "_Multiply": "`ast` calls them",
}
"""Classes whose methods nothing in the package calls by name."""
LONG_TEXT = re.compile(r'(^ *)?"""[\s\S]*?"""', re.MULTILINE)
Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@cache
def definitions() -> list[tuple[str, Definition]]:
    """What is defined at the top level of every module, without the bodies of functions and classes."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if "_template" not in path.parts:
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    node.body = [each for each in node.body if names_of(each, decorated=True)]
                    for each in node.body:
                        drop_body(each)
                drop_body(node)
                if isinstance(node, Definition):
                    found.append((str(path.relative_to(PACKAGE)), node))
    return found


def drop_body(node: ast.stmt) -> None:
    """All bodies together take 200 MB."""
    if isinstance(node, ast.FunctionDef):
        node.body = []


def test_type_names_are_unique() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for module, node in definitions():
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            homes[node.name].append(module)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_every_name_is_used() -> None:
    """By the package or its benchmarks. A name that occurs once is only its own definition."""
    words: Counter[str] = Counter()
    for folder in ("src", "bench", "lab"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".html"):
                words.update(re.findall(r"[A-Za-z_]\w*", without_docstrings(path.read_text("utf-8"))))
    unused = [
        f"{module}:{name}"
        for module, node in definitions()
        for name in [*names_of(node), *names_of_members(node)]
        if words[name] == 1 and name not in USED_ELSEWHERE
    ]
    assert unused == []


def without_docstrings(text: str) -> str:
    """A name in a docstring is not used there. Docstrings begin their line; SQL and help texts do not."""
    return LONG_TEXT.sub(lambda found: found[0] if found[1] is None else "", text)


def test_names_in_docstrings_do_not_count() -> None:
    text = 'def used():\n    """About unused,\n    in two lines.\n    """\n    tx.one("""SELECT kept\n""")\n'
    assert re.findall(r"\w+", without_docstrings(text)) == ["def", "used", "tx", "one", "SELECT", "kept"]


def names_of(node: ast.stmt, *, decorated: bool = False) -> list[str]:
    """A decorator may register a function under its name, but not a property or a method."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [] if node.name.startswith("__") or (node.decorator_list and not decorated) else [node.name]
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return []
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [each.id for each in targets if isinstance(each, ast.Name) and not each.id.startswith("__")]


def names_of_members(node: Definition) -> list[str]:
    """Methods and fields of a class."""
    if not isinstance(node, ast.ClassDef) or node.name in CALLED_ELSEWHERE:
        return []
    return [name for each in node.body for name in names_of(each, decorated=True)]


def test_constants_come_before_their_use() -> None:
    """A table of functions comes after its functions. The modules listed here have not been ordered yet."""
    unordered = (
        "estimate/host", "estimate/operation", "estimate/speed", "estimate/step", "workload/tracing/cuda",
        "workload/tracing/loading", "workload/tracing/reading", "workload/tracing/script", "workload/tracing/unknown",
    )  # fmt: skip
    assert [each for each in late_constants() if not each.startswith(unordered)] == []


def late_constants() -> list[str]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        own = {each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.ClassDef)}
        first: dict[str, int] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                first[node.id] = min(node.lineno, first.get(node.id, node.lineno))
        for each in tree.body:
            if isinstance(each, ast.Assign | ast.AnnAssign) and not own & words_in(each):
                late = [name for name in names_of(each) if first.get(name, each.lineno) < each.lineno]
                found += [f"{path.relative_to(PACKAGE)}:{name}" for name in late]
    return found


def words_in(node: ast.stmt) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def test_what_a_name_may_be_is_written_once() -> None:
    """A second copy drifts: the command line would refuse what the server accepts, or the other way round."""
    lengths = re.compile(r"\{0,(61|38|254)\}")
    copies = [
        f"{path.relative_to(PACKAGE)}:{number}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if lengths.search(line) and path.name != "limits.py"
    ]
    assert copies == []


def test_names_are_checked_in_one_place() -> None:
    """`base/names.py` has the sentence and the hint; the types of the API have the patterns for clients."""
    others = {
        "api/query.py": "the form of a filter",
        "drivers/lxd/names.py": "names on the host",
        "fleet/label/rules.py": "values of labels",
        "instance/account/rules.py": "a reference to a variable",
    }
    patterns = re.compile(r"from teraflock\.base\.limits import [^(\n]*\b(?:NAME|PLACE|LABEL_KEY|VARIABLE)\b")
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if patterns.search(
            re.sub(r"\(\n([^)]*)\)", lambda names: names[1].replace("\n", ""), path.read_text("utf-8"))
        )
    }
    assert {each for each in found if not each.startswith("wire/")} == {*others, "base/names.py"}

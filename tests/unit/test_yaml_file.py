"""YAML files: what they may say, and how what they may not is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunchray.errors import UsageError
from trunchray.frontends.yaml_file import MAX_INTEGER, read_yaml

TENFOLD = "a0: &a0 x\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10))


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "c.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("content", "value"),
    [
        pytest.param("", None, id="empty"),
        pytest.param("\ufeffa: 1", {"a": 1}, id="byte order mark"),
        pytest.param("a: 2026-01-01", {"a": "2026-01-01"}, id="a date is text"),
        pytest.param("a: [1e3, -2E-1, +1e+2]", {"a": [1000.0, -0.2, 100.0]}, id="exponents as in JSON"),
        pytest.param("a: '1e3'", {"a": "1e3"}, id="quoted"),
        pytest.param("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}, id="alias"),
        pytest.param(
            "a: &x {b: 1, c: 1}\nd: &y {<<: *x, c: 2}\ne: {<<: *y, f: 3}",
            {"a": {"b": 1, "c": 1}, "d": {"b": 1, "c": 2}, "e": {"b": 1, "c": 2, "f": 3}},
            id="merge keys may be overridden",
        ),
        pytest.param(
            "a: &x {b: 1}\nc: &y {b: 2, d: 2}\ne: {<<: [*x, *y], f: 3}",
            {"a": {"b": 1}, "c": {"b": 2, "d": 2}, "e": {"b": 1, "d": 2, "f": 3}},
            id="the first of several merged mappings wins",
        ),
        pytest.param(f"a: {MAX_INTEGER}\nb: -{MAX_INTEGER}", {"a": MAX_INTEGER, "b": -MAX_INTEGER}, id="integers"),
    ],
)
def test_what_a_file_says(content: str, value: object, tmp_path: Path):
    """A file means what its JSON would mean."""
    assert read_yaml(str(written(tmp_path, content))).value == value


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("a: 1\nb: 2\na: 3", ":3: the key 'a' stands on line 1 too; keep one", id="a key twice"),
        pytest.param("a:\n  - {b: 1, b: 2}", ":2: the key 'b' stands on line 2 too; keep one", id="deep down"),
        pytest.param("a:\n\tb: 1", ":2: not YAML: found character '\\t' that cannot start any token; indent", id="tab"),
        pytest.param("a: [1, 2", ":1: not YAML: expected ',' or ']', but got '<stream end>'", id="not closed"),
        pytest.param("a: *b", ":1: not YAML: found undefined alias 'b'", id="unknown alias"),
        pytest.param("a: 1\n---\nb: 2", ":2: not YAML: but found another document", id="two documents"),
        pytest.param('a: "\0"', ": not YAML: unacceptable character #x0000", id="control character"),
        pytest.param("a: 1\non: 2", ":2: the key 'on' is not text; put it in quotes", id="a key that means true"),
        pytest.param("1: a", ":1: the key '1' is not text; put it in quotes", id="a number as key"),
        pytest.param("[a]: 1", ":1: the key a list or mapping is not text", id="a list as key"),
        pytest.param("a: !!python/object:os.system x", ":1: the tag !!python/object:os.system has no", id="python"),
        pytest.param("a: !!set {b}", ":1: the tag !!set has no meaning here; remove it", id="set"),
        pytest.param("a: !mine b", ":1: the tag !mine has no meaning here; remove it", id="own tag"),
        pytest.param("a: &a\n- *a", ":1: holds itself, by its own alias", id="holds itself"),
        pytest.param("a: &a {b: 1}\nc: {<<: [*a, 3]}", ":2: << takes a mapping, or a list of them", id="merge"),
        pytest.param("a: &a {<<: *a}", ":1: holds itself, by its own alias", id="merges itself"),
        pytest.param(TENFOLD, ":6: stands for more than 100,000 values", id="aliases of aliases"),
        pytest.param("- " * 500, ": is nested too deeply", id="deep"),
        pytest.param("a: .nan", ":1: .nan cannot be used as a number", id="not a number"),
        pytest.param("a: -.inf", ":1: -.inf cannot be used as a number", id="infinite"),
        pytest.param("a: 1e999", ":1: 1e999 cannot be used as a number", id="overflow"),
        pytest.param("a: !!int x", ":1: x cannot be used as an integer", id="wrong tag"),
        pytest.param("a: !!bool x", ":1: x cannot be used as true or false", id="no boolean"),
        pytest.param(f"a: {MAX_INTEGER + 1}", f":1: {MAX_INTEGER + 1} is too large; integers go up to", id="large"),
        pytest.param("a: " + "9" * 5000, f":1: {'9' * 39}… cannot be used as an integer", id="very large"),
        pytest.param(b"a: \xff", "it is not UTF-8 text (invalid start byte at byte 3)", id="not text"),
    ],
)
def test_what_a_file_may_not_say(content: str | bytes, message: str, tmp_path: Path):
    """Each refusal names the file, the line and the value; nothing is silently taken one way or the other."""
    path = written(tmp_path, content)
    with pytest.raises(UsageError) as refused:
        read_yaml(str(path))
    assert message in str(refused.value)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_files_that_cannot_be_read(tmp_path: Path):
    """A missing file and a folder are named."""
    with pytest.raises(UsageError, match=r"no such file: '.*nope\.yaml'"):
        read_yaml(str(tmp_path / "nope.yaml"))
    with pytest.raises(UsageError, match=r"cannot read '.*': Is a directory"):
        read_yaml(str(tmp_path))


def test_values_have_places(tmp_path: Path):
    """A location leads to the line of its key or entry, or of the innermost one around it."""
    file = read_yaml(str(written(tmp_path, "a:\n  - b: 1\n    c:\n      d: 2\ne: 3")))
    name = str(tmp_path / "c.yaml")
    assert file.place(["a", 0, "c", "d"]) == f"{name}:4"
    assert file.place(["a", 0, "c", "missing"]) == f"{name}:3"
    assert file.place(["a", 0, "c"]) == f"{name}:3"
    assert file.place(["a", 0]) == f"{name}:2"
    assert file.place(["a", 7]) == f"{name}:1"
    assert file.place(["e"]) == f"{name}:5"
    assert file.place([]) == f"{name}:1"

"""Releases in a store."""

import json
from pathlib import Path

import pytest

from trunchray.adapters.releases import CaseTable, open_release, verify_release, write_release
from trunchray.adapters.store import Store
from trunchray.core.digest import sha256
from trunchray.core.release import (
    Compiler,
    Release,
    ReleaseCases,
    ReleaseEval,
    ReleaseEvaluator,
    ReleaseSource,
    sealed,
)
from trunchray.errors import ReleaseError

COMPILER = Compiler(trunchray="1", deno="2", esbuild="3")
MODULE = b"export default { evaluate: () => true };\n"


def line(case_id: str, eval_id: str = "a") -> bytes:
    case = {
        "id": case_id,
        "evalId": eval_id,
        "title": case_id,
        "description": "",
        "input": {"prompt": "Say ünï\u2028.", "tools": []},
        "data": None,
        "checks": {"evaluate": {"kind": "non_empty"}},
        "source": {"path": "evals/a.ts"},
    }
    return json.dumps(case, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


CASES = line("one") + line("two", "b") + line("three")


def make_release(cases: bytes = CASES, **changes) -> Release:
    fields = {
        "title": "Tiny",
        "version": "1.0.0",
        "evals": (ReleaseEval(id="a", title="A", cases=3, path="evals/a.ts"),),
        "evaluators": (ReleaseEvaluator(key="evals/a.ts#default", module=sha256(MODULE), export="default"),),
        "cases": ReleaseCases(count=cases.count(b"\n"), sha256=sha256(cases), bytes=len(cases)),
        "compiler": COMPILER,
    }
    return sealed(Release(**(fields | changes)))


@pytest.fixture
def root(tmp_path) -> Store:
    return Store(str(tmp_path))


@pytest.fixture
def folder(root) -> Path:
    return Path(write_release(root, make_release(), CASES, {sha256(MODULE): MODULE}).uri)


def test_a_written_release_opens(folder):
    """What was written is read back: manifest, cases by id and in order, modules by hash."""
    stored = open_release(str(folder))
    cases = stored.cases()
    assert stored.release == make_release()
    assert cases.index == [("one", "a"), ("two", "b"), ("three", "a")]
    assert cases["two"].eval_id == "b"
    assert [case.id for case in cases] == ["one", "two", "three"]
    assert stored.module(sha256(MODULE)) == MODULE
    assert verify_release(str(folder)) == []


def test_writing_again_changes_nothing(root, folder):
    """Compiling the same benchmark to the same place is a no-op, even from another commit."""
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    again = make_release(source=ReleaseSource(commit="c0ffee"))
    assert write_release(root, again, CASES, {sha256(MODULE): MODULE}).uri == str(folder)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_an_interrupted_write_is_completed(root, folder):
    """A folder without `release.json` is not a release, and writing finishes it."""
    (folder / "release.json").unlink()
    (folder / "cases.jsonl").write_bytes(b"half")
    (folder / "modules" / ".torn").write_bytes(b"half")
    write_release(root, make_release(), CASES, {sha256(MODULE): MODULE})
    assert verify_release(str(folder)) == []


def test_another_release_under_the_same_name_is_refused(root, folder):
    """Two releases never share a folder."""
    other = make_release(description="other")
    clash = other.model_copy(update={"digest": make_release().digest[:12] + other.digest[12:]})
    with pytest.raises(ReleaseError, match="holds another release"):
        write_release(root, clash, CASES, {})


def test_a_damaged_copy_is_named_when_written_again(root, folder):
    """A damaged earlier copy is not silently kept."""
    (folder / "cases.jsonl").write_bytes(CASES.replace(b"Say", b"say"))
    with pytest.raises(ReleaseError, match=r"damaged copy of this release: cases\.jsonl .* was changed"):
        write_release(root, make_release(), CASES, {sha256(MODULE): MODULE})


@pytest.mark.parametrize("name", ["release.json", "cases.jsonl", f"modules/{sha256(MODULE)}.mjs"])
@pytest.mark.parametrize("where", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
def test_one_flipped_bit_is_named(folder, name, where):
    """No single bit of a release changes unseen."""
    path = folder / name
    content = bytearray(path.read_bytes())
    content[int(len(content) * where)] ^= 1
    path.write_bytes(content)
    differences = verify_release(str(folder))
    assert differences
    assert all(difference.startswith(name) for difference in differences)


@pytest.mark.parametrize("name", ["release.json", "cases.jsonl", f"modules/{sha256(MODULE)}.mjs"])
def test_a_missing_file_is_named(folder, name):
    """Verification says which file is gone."""
    (folder / name).unlink()
    assert verify_release(str(folder))[0].startswith(f"{name} is missing")


def test_an_extra_module_is_named(folder):
    """A module that the manifest does not know does not belong there."""
    (folder / "modules" / "extra.mjs").write_bytes(b"")
    assert verify_release(str(folder)) == ["modules/extra.mjs does not belong to the release"]


def test_everything_that_differs_is_named(folder):
    """Verification goes on after the first difference."""
    (folder / "cases.jsonl").unlink()
    (folder / "modules" / f"{sha256(MODULE)}.mjs").write_bytes(b"other")
    assert len(verify_release(str(folder))) == 2


def edit(folder: Path, **changes) -> None:
    path = folder / "release.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "format 2 is unknown to this version, which reads format 1"),
        ({"title": "Other"}, "was changed after it was compiled: its digest is"),
        ({"warnings": ["new"]}, "was changed after it was compiled: its seal does not match"),
        ({"cases": 3}, "is not the manifest of a release: cases:"),
        ({"extra": 1}, "is not the manifest of a release: extra:"),
        ({"tags": ["\ud800"]}, "is not the manifest of a release:"),
    ],
)
def test_a_changed_manifest_is_refused(folder, changes, message):
    """A manifest of another format, or one that was edited, does not open, and says why."""
    edit(folder, **changes)
    with pytest.raises(ReleaseError, match=message):
        open_release(str(folder))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_what_is_not_a_manifest_is_refused(folder, content):
    """A file that is not JSON, or not an object, is not a release."""
    (folder / "release.json").write_bytes(content)
    with pytest.raises(ReleaseError, match=r"is not the manifest of a release|format None is unknown"):
        open_release(str(folder))


def test_a_folder_without_a_manifest_is_no_release(tmp_path):
    """Opening something else says what was looked for."""
    with pytest.raises(ReleaseError, match=r"it holds no release\.json"):
        open_release(str(tmp_path))


def test_an_unknown_case_gets_a_suggestion():
    """Asking for a case that is not there names the nearest one."""
    with pytest.raises(ReleaseError, match="no case 'thre' — did you mean 'three'"):
        CaseTable(CASES)["thre"]


def test_ids_are_found_wherever_they_stand():
    """A line whose fields come in another order is read all the same."""
    case = json.loads(line("one"))
    content = json.dumps({"title": case.pop("title"), **case}).encode() + b"\n" + line("two")
    assert [case.id for case in CaseTable(content)] == ["one", "two"]


@pytest.mark.parametrize("content", [b"{}\n", b"nonsense\n", line("one") * 2])
def test_a_table_of_something_else_is_refused(content):
    """Lines without ids, and two lines with the same one, are not the cases of a release."""
    with pytest.raises(ReleaseError, match=r"cases\.jsonl holds"):
        CaseTable(content)


def test_a_release_lives_on_any_store():
    """Nothing about a release needs a local disk."""
    root = Store("memory://test-releases")
    for _ in range(2):
        store = write_release(root, make_release(), CASES, {sha256(MODULE): MODULE})
    assert verify_release(store.uri) == []
    assert open_release(store.uri).cases()["two"].eval_id == "b"

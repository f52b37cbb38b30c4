"""Every refusal, word for word: `tests/repos/broken/*/expected.txt` is what the author reads."""

import shutil
from pathlib import Path

import pytest

from trunchray.errors import AuthoringError
from trunchray.frontends.benchmark.compiler import compile_benchmark, compile_to

BROKEN = sorted((Path(__file__).parents[2] / "repos" / "broken").iterdir())


@pytest.mark.parametrize("repository", BROKEN, ids=lambda path: path.name)
def test_broken_repositories_are_refused(repository, tmp_path):
    """The error text is exactly the expected one, and nothing is written."""
    shutil.copytree(repository, tmp_path / "b", ignore=shutil.ignore_patterns("expected.txt"))
    with pytest.raises(AuthoringError) as refused:
        compile_to(tmp_path / "b", str(tmp_path / "out"))
    assert str(refused.value) == (repository / "expected.txt").read_text().rstrip("\n")
    assert not (tmp_path / "out").exists()


def test_too_many_cases_are_refused_before_anything_is_written(tmp_path):
    """The 25,001st case fails the whole benchmark; 25,000 in a file and one elsewhere count together."""
    evals = tmp_path / "b" / "evals"
    evals.mkdir(parents=True)
    shared = 'evaluate: { kind: "non_empty" }'
    (evals / "a.ts").write_text(f'export default {{ id: "a", cases: "./a.jsonl", {shared} }};')
    (evals / "a.jsonl").write_text("".join(f'{{"id":"a.{n}","prompt":"p"}}\n' for n in range(25_000)))
    (evals / "b.ts").write_text(f'export default {{ id: "b", prompt: "p", {shared} }};')
    with pytest.raises(AuthoringError, match="25,001 cases are too many; a release holds at most 25,000"):
        compile_to(tmp_path / "b", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_links_out_of_the_repository_are_refused(tmp_path):
    """Neither an entrypoint nor an import may lead to a file outside of the repository."""
    (tmp_path / "secret.ts").write_text('export default { id: "a", prompt: "p", evaluate: { kind: "non_empty" } };')
    evals = tmp_path / "b" / "evals"
    evals.mkdir(parents=True)
    (evals / "linked.ts").symlink_to(tmp_path / "secret.ts")
    (evals / "importing.ts").write_text('export { default } from "../../secret";')
    (tmp_path / "b" / "benchmark.config.ts").write_text(
        'export default { protocolVersion: 1, title: "T", version: "1.0.0",'
        ' evals: ["evals/linked.ts", "evals/importing.ts"] };'
    )
    with pytest.raises(AuthoringError) as refused:
        compile_benchmark(tmp_path / "b")
    text = str(refused.value)
    assert "evals[0]: 'evals/linked.ts' is a link that leaves the repository" in text
    assert "secret" in text.splitlines()[1]


def test_files_that_are_left_out_are_named_where_they_are_imported(tmp_path):
    """An import of a link that leaves the repository, of a file with secrets or of a huge one says so."""
    (tmp_path / "secret.txt").write_text("s")
    evals = tmp_path / "b" / "evals"
    evals.mkdir(parents=True)
    (evals / "link.txt").symlink_to(tmp_path / "secret.txt")
    (evals / ".env").write_text("KEY=secret")
    (evals / "huge.json").write_bytes(b"[" + b"1," * 25_000_000 + b"1]")
    for name, file in {"a": "link.txt", "b": ".env", "c": "huge.json"}.items():
        (evals / f"{name}.ts").write_text(
            f'import p from "./{file}" with {{ type: "text" }};\n'
            f'export default {{ id: "{name}", prompt: p, evaluate: {{ kind: "non_empty" }} }};'
        )
    with pytest.raises(AuthoringError) as refused:
        compile_benchmark(tmp_path / "b")
    link, env, huge = str(refused.value).splitlines()
    assert link.startswith("evals/a.ts:1: imports './link.txt', which is a link that leaves the repository")
    assert env.startswith("evals/b.ts:1: imports './.env', which is left out, because files of this name may hold")
    assert huge == (
        "evals/c.ts:1: imports './huge.json', which has more than 50 MB; what modules import may have at most 50 MB"
    )


@pytest.mark.parametrize("listed", [False, True])
def test_huge_modules_are_named(tmp_path, listed):
    """A module of more than 50 MB is no module that is left out in silence, whether it was listed or found."""
    (tmp_path / "evals").mkdir()
    (tmp_path / "tools").mkdir()
    (tmp_path / "evals" / "a.ts").write_text(
        'export default { id: "a", prompt: "p", evaluate: { kind: "non_empty" } };'
    )
    for folder in ("evals", "tools"):
        (tmp_path / folder / "huge.ts").write_bytes(b"//" + b"x" * 50_000_000)
    if listed:
        (tmp_path / "benchmark.config.ts").write_text(
            'export default { protocolVersion: 1, title: "T", version: "1.0.0",'
            ' evals: ["evals/a.ts", "evals/huge.ts"], tools: ["tools/huge.ts"] };'
        )
    with pytest.raises(AuthoringError) as refused:
        compile_benchmark(tmp_path)
    what = "has more than 50 MB, too much for a module (keep its data in a file of its own)"
    places = [("evals", "'evals/huge.ts'"), ("tools", "'tools/huge.ts'")]
    assert str(refused.value).splitlines() == [
        f"benchmark.config.ts: {folder}[{1 if folder == 'evals' else 0}]: {file} {what}"
        if listed
        else f"{folder}: {file} {what}; remove it"
        for folder, file in places
    ]

"""Compiling cases that a transformer makes of its sources."""

from __future__ import annotations

import hashlib
import json
import os

import pytest

from trunchray.errors import AuthoringError
from trunchray.frontends.benchmark.compiler import compile_benchmark

READ = "sources.rows.content.split(/\\r?\\n/).filter(Boolean).map((line) => JSON.parse(line))"


def cases(compiled) -> list[dict]:
    return [json.loads(line) for line in compiled.cases.split(b"\n")[:-1]]


def test_a_transformer_is_given_the_exact_text_of_each_source(repository, write):
    """`content`, `path` and `sha256`, and nothing else; byte order mark, CRLF and U+2028 are part of the text."""
    text = "\ufeffone\r\ntwo\u2028three 日本語 😀\n"
    write("package.json", "{}")
    benchmark = repository(
        '[{ id: "a.1", prompt: "p", data: [Object.keys(sources), sources] }]',
        text,
        '{ rows: "../data/rows.txt", b: "../evals/../data/rows.txt" }',
    )
    digest = hashlib.sha256(text.encode()).hexdigest()
    source = {"content": text, "path": "data/rows.txt", "sha256": digest}
    assert cases(compile_benchmark(benchmark))[0]["data"] == [["rows", "b"], {"rows": source, "b": source}]


def test_the_manifest_tells_where_the_cases_came_from(repository, write):
    """Name, path and hash of the transformer's file, each source with its size, and how many cases; one entry each."""
    benchmark = repository(READ, '{"id":"a.1","prompt":" p "}\n')
    (entry,) = compile_benchmark(benchmark).release.transformers
    assert (entry.name, entry.path, entry.case_count) == ("T", "transformers/t.ts", 1)
    assert entry.sha256 == hashlib.sha256((benchmark / "transformers/t.ts").read_bytes()).hexdigest()
    rows = (benchmark / "data/rows.txt").read_bytes()
    source = entry.sources["rows"]
    assert (source.path, source.bytes, source.sha256) == ("data/rows.txt", len(rows), hashlib.sha256(rows).hexdigest())


def test_cases_point_to_the_transformer(repository):
    """The origin of a case is the transformer and the place in the returned array; what the eval says is inherited."""
    first, second = cases(compile_benchmark(repository(READ, '{"id":"z","prompt":" p "}\n{"id":"b","prompt":"q"}')))
    assert [case["source"] for case in (first, second)] == [
        {"path": "transformers/t.ts", "row": 1},
        {"path": "transformers/t.ts", "row": 2},
    ]
    assert (first["id"], first["input"]["prompt"], first["title"]) == ("z", "p", "a — z")
    assert first["checks"] == {"evaluate": {"kind": "non_empty"}}


def test_one_byte_of_a_source_is_another_release(repository):
    """A source that changes nothing about the cases is part of the digest all the same."""
    transform = '[{ id: "a.1", prompt: "p" }]'
    before = compile_benchmark(repository(transform, "x"))
    after = compile_benchmark(repository(transform, "y"))
    assert before.cases == after.cases
    assert before.release.digest != after.release.digest


def test_the_surroundings_of_the_user_do_not_matter(repository, monkeypatch):
    """Another time zone and another locale give the same release, also of code that would differ in them."""
    transform = '[{ id: "a.1", prompt: new Date(86399e3).toISOString() + ["b", "a"].sort() }]'
    before = compile_benchmark(repository(transform)).release.digest
    for name, value in {"TZ": "Asia/Tokyo", "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}.items():
        monkeypatch.setenv(name, value)
    assert compile_benchmark(repository(transform)).release.digest == before


def test_pure_modules_of_node_work(repository, write):
    """Hashing, buffers, paths and utilities are there, imported from local modules as well."""
    write(
        "transformers/lib/id.ts",
        'import { createHash } from "node:crypto";\nimport { Buffer } from "node:buffer";\n'
        'import path from "path";\nimport { isDeepStrictEqual } from "node:util";\n'
        "export const id = (text: string): string =>\n"
        '  createHash("sha256").update(Buffer.from(text)).digest("hex") + path.extname("a.b") +\n'
        "  isDeepStrictEqual(1, 1);",
    )
    benchmark = repository("[]", "x")
    write(
        "transformers/t.ts",
        'import { id } from "./lib/id";\n'
        'export default { name: "T", transform: ({ sources }: any) =>'
        ' [{ id: id(sources.rows.content), prompt: "p" }] };',
    )
    assert cases(compile_benchmark(benchmark))[0]["id"] == hashlib.sha256(b"x").hexdigest() + ".btrue"


def test_times_and_sorting_that_do_not_depend_on_the_machine_work(repository):
    """Dates with a zone, ASCII sorting by locale, and the stack of an error are the same everywhere."""
    transform = (
        '[{ id: "a.1", prompt: [new Date("2023-05-01").toISOString(), Date.UTC(2020, 1), ...["b", "a10", "a9"]'
        '.sort((a, b) => a.localeCompare(b)), new Date(0).getTime(), new Error("x").stack].join(" ") }]'
    )
    prompt = cases(compile_benchmark(repository(transform)))[0]["input"]["prompt"]
    assert prompt.startswith(
        "2023-05-01T00:00:00.000Z 1580515200000 a10 a9 b 0 Error: x\n    at Object.transform (module.mjs:"
    )
    assert "file://" not in prompt


def test_a_transformer_cannot_change_what_its_second_run_sees(repository):
    """Each run has its own process and its own copies: what one leaves behind is gone in the next."""
    transform = (
        "{ const count = (globalThis.count = (globalThis.count ?? 0) + 1); sources.rows.content += count;"
        ' Array.prototype.map = null; return [{ id: "a.1", prompt: sources.rows.content }]; }'
    )
    assert cases(compile_benchmark(repository(transform, "x")))[0]["input"]["prompt"] == "x1"


ODD = {
    "link out": (lambda path: path.symlink_to("/etc/hostname"), "is a link that leaves the repository"),
    "directory": (lambda path: (path / "file").mkdir(parents=True) or (path / "file" / "x").touch(), "is not a file"),
    "fifo": (os.mkfifo, "is not a regular file"),
}


@pytest.mark.parametrize(("make", "message"), ODD.values(), ids=ODD)
def test_sources_are_regular_files_of_the_repository(repository, make, message):
    """A link that leaves the repository, a directory and a FIFO are refused as what they are."""
    benchmark = repository("[]", sources='{ rows: "../data/odd" }')
    make(benchmark / "data" / "odd")
    with pytest.raises(AuthoringError) as refused:
        compile_benchmark(benchmark)
    assert str(refused.value) == f"evals/a.ts: cases.sources.rows: '../data/odd' {message}"


def test_a_source_has_at_most_50_mb(repository):
    """One byte more is refused, with the size; exactly 50 MB are fine."""
    benchmark = repository("[]", sources='{ rows: "../data/large" }')
    with (benchmark / "data" / "large").open("wb") as file:
        file.truncate(50_000_001)
    with pytest.raises(AuthoringError, match=r"rows: '\.\./data/large' has 50\.0 MB; a source may have at most 50 MB"):
        compile_benchmark(benchmark)


def test_all_sources_together_have_at_most_200_mb(repository, write):
    """A file that is named twice counts once; the file that goes over the limit is refused before anything runs."""
    benchmark = repository("[]")
    eval_module = (benchmark / "evals/a.ts").read_text()
    for number in range(5):
        with write(f"data/{number}", b"").open("wb") as file:
            file.truncate(45_000_000)
    for letter, numbers in (("b", range(3)), ("c", range(1, 5))):
        sources = json.dumps({f"s{number}": f"../data/{number}" for number in numbers})
        text = eval_module.replace('"a"', f'"{letter}"').replace('{ rows: "../data/rows.txt" }', sources)
        write(f"evals/{letter}.ts", text)
    write("transformers/t.ts", 'export default { name: "T", transform: () => [{ id: "x", prompt: "p" }] };')
    with pytest.raises(AuthoringError) as refused:
        compile_benchmark(benchmark)
    message = "evals/c.ts: cases.sources: bring all sources of the repository to 225.0 MB; at most 200 MB are allowed"
    assert message in str(refused.value)


def test_two_evals_may_share_a_transformer(repository, write):
    """Each with its own sources; the one that two evals use alike runs once, and its cases are there twice."""
    benchmark = repository(READ, '{"id":"a.1","prompt":"p"}')
    write("data/more.txt", '{"id":"b.1","prompt":"q"}')
    second = (benchmark / "evals/a.ts").read_text().replace('"a"', '"b"')
    write("evals/b.ts", second.replace("rows.txt", "more.txt"))
    compiled = compile_benchmark(benchmark)
    assert [case["id"] for case in cases(compiled)] == ["a.1", "b.1"]
    assert len(compiled.release.transformers) == 2
    write("evals/c.ts", second.replace("rows.txt", "more.txt").replace('"b"', '"c"'))
    with pytest.raises(AuthoringError, match=r"case id 'b\.1' is already used at case 1 of transformers/t\.ts"):
        compile_benchmark(benchmark)

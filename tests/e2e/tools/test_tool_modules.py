"""What becomes of tool modules when a benchmark is compiled: frozen schemas, or every reason why not."""

from __future__ import annotations

import asyncio

import pytest

from trunchray.core.digest import canonical
from trunchray.errors import Problem
from trunchray.frontends.benchmark.staging import Stage
from trunchray.frontends.benchmark.tools import read_tools

IMPORTS = 'import { tool, jsonSchema, dynamicTool } from "ai";\nimport { z } from "zod";\n'
OK = 'description: "Does it.", execute: async () => 1'
SUPPORT = """
export const tools = {
  lookup_policy: tool({
    description: "Look up a policy.",
    inputSchema: z.object({ topic: z.string().describe("What about"), limit: z.number().int().optional() }),
    execute: async ({ topic }) => ({ topic }),
  }),
  "get-order": tool({
    description: "Look up an order.",
    inputSchema: jsonSchema({ type: "object", properties: { id: { type: "string" } }, required: ["id"] }),
    execute: async () => 1,
  }),
};
"""


@pytest.mark.parametrize("ai", [5, 6, 7])
async def test_the_authors_own_libraries_give_the_schema(read, ai):
    """AI SDK 5 to 7 with zod 3 or 4: names, descriptions and JSON Schema come out as their library makes them."""
    tools, found = await read({"tools/support.ts": SUPPORT}, ai=ai)
    assert found == []
    first, second = tools.tools
    assert (first.name, first.description) == ("lookup_policy", "Look up a policy.")
    topic = first.input_schema["properties"]["topic"]
    assert topic == {"type": "string", "description": "What about"}
    assert first.input_schema["required"] == ["topic"]
    assert second.input_schema == {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    assert set(tools.modules) == {first.module} == {second.module}
    assert tools.names == {"lookup_policy", "get-order"}


async def test_schemas_of_every_kind(read):
    """Promised schemas, standard schemas, transformations, recursion and large numbers become plain JSON Schema."""
    tools, found = await read(
        {
            "tools/a.ts": f"""
            import * as mini from "zod/mini";
            import {{ z as three }} from "zod/v3";
            import {{ zodSchema }} from "ai";
            const tree = z.object({{ value: z.string(), get children() {{ return z.array(tree); }} }});
            export const tools = {{
              promised: tool({{ {OK}, inputSchema: jsonSchema(async () => ({{ type: "object" }})) }}),
              lazy: tool({{ {OK}, inputSchema: () => zodSchema(z.object({{ a: z.string() }})) }}),
              mini: tool({{ {OK}, inputSchema: mini.object({{ a: mini.string() }}) }}),
              three: tool({{ {OK}, inputSchema: three.object({{ a: three.string() }}) }}),
              changed: tool({{
                {OK}, inputSchema: z.object({{ n: z.coerce.number(), t: z.string().transform(Number) }}),
              }}),
              tree: tool({{ {OK}, inputSchema: tree }}),
              large: tool({{ {OK}, inputSchema: jsonSchema({{ type: "object", maximum: 2 ** 60, x: undefined }}) }}),
              nothing: {{ {OK}, inputSchema: z.object({{}}) }},
            }};
            """
        }
    )
    assert found == []
    schemas = {tool.name: tool.input_schema for tool in tools.tools}
    assert schemas["promised"] == {"type": "object"}
    for name in ("lazy", "mini", "three"):
        assert schemas[name]["properties"] == {"a": {"type": "string"}}
    assert schemas["changed"]["properties"] == {"n": {"type": "number"}, "t": {"type": "string"}}
    assert "$ref" in str(schemas["tree"])
    assert schemas["large"] == {"type": "object", "maximum": 2.0**60}
    assert canonical(schemas)


async def test_the_place_does_not_matter(read, stage_of, tmp_path):
    """The same module gives the same bytes wherever its repository is."""
    one, _ = await read({"tools/support.ts": SUPPORT})
    other, _ = await read({"tools/support.ts": SUPPORT})
    assert one.modules == other.modules
    changed, _ = await read({"tools/support.ts": SUPPORT.replace("({ topic })", "({ topic, more: 1 })", 1)})
    assert changed.modules.keys() != one.modules.keys()


REFUSED = {
    "parameters": (
        f"{{ a: {{ {OK}, parameters: z.object({{}}) }} }}",
        ["tools.a.parameters: is the name that version 4 of 'ai' used; rename it to `inputSchema`"],
    ),
    "no schema": (
        f"{{ a: {{ {OK} }} }}",
        ["tools.a.inputSchema: is required; for a tool without arguments write z.object({})"],
    ),
    "no JSON Schema": (
        f"{{ a: {{ {OK}, inputSchema: z.object({{ d: z.date() }}) }} }}",
        ["tools.a.inputSchema: cannot become JSON Schema: Date cannot be represented in JSON Schema"],
    ),
    "bare object": (
        f'{{ a: {{ {OK}, inputSchema: {{ type: "object" }} }} }}',
        ["tools.a.inputSchema: is a bare object; wrap a JSON Schema in jsonSchema() of 'ai', or use zod"],
    ),
    "schema is text": (
        f'{{ a: {{ {OK}, inputSchema: jsonSchema("text") }} }}',
        ["tools.a.inputSchema: gives a string as its JSON Schema, not an object"],
    ),
    "schema is not plain": (
        f"{{ a: {{ {OK}, inputSchema: jsonSchema({{ maximum: Infinity }}) }} }}",
        ["tools.a.inputSchema: gives a JSON Schema whose maximum is Infinity, which JSON cannot carry"],
    ),
    "no description": (
        (
            "{ a: { inputSchema: z.object({}), execute() {} },"
            " b: { description: ' ', inputSchema: z.object({}), execute() {} } }"
        ),
        [
            "tools.a.description: is required: say in a sentence what the tool does",
            "tools.b.description: is required: say in a sentence what the tool does",
        ],
    ),
    "description is a function": (
        "{ a: { description: () => 'x', inputSchema: z.object({}), execute() {} } }",
        ["tools.a.description: must be a string, not a function"],
    ),
    "no execute": (
        "{ a: { description: 'x', inputSchema: z.object({}) } }",
        ["tools.a.execute: is required; without it nobody can answer the model's calls"],
    ),
    "approval": (
        (
            f"{{ a: {{ {OK}, inputSchema: z.object({{}}), needsApproval: true }},"
            f" b: {{ {OK}, inputSchema: z.object({{}}), needsApproval: async () => false }} }}"
        ),
        [
            "tools.a.needsApproval: is not possible: nobody is there to approve a call during a run; remove it",
            "tools.b.needsApproval: is not possible: nobody is there to approve a call during a run; remove it",
        ],
    ),
    "dynamic": (
        f"{{ a: dynamicTool({{ {OK}, inputSchema: z.object({{}}) }}) }}",
        ["tools.a.type: is 'dynamic', a tool whose schema is unknown before it runs; write it with tool() of 'ai'"],
    ),
    "of a provider": (
        "{ a: { type: 'provider', id: 'openai.web_search', args: {}, inputSchema: z.object({}) } }",
        ["tools.a.type: is \"provider\", a tool that one provider alone has; write it with tool() of 'ai'"],
    ),
    "names": (
        f"{{ 'a b': {{ {OK}, inputSchema: z.object({{}}) }} }}",
        [
            (
                "tools[\"a b\"]: 'a b' is not a tool name: start with a letter or '_', go on with letters, digits, '_' "
                "and '-', at most 64 characters"
            )
        ],
    ),
    "an array": ("[]", ["tools: must be an exported object of tools by their names, but it is an array"]),
    "a function": ("() => ({})", ["tools: must be an exported object of tools by their names, but it is a function"]),
    "not tools": ("{ a: 1 }", ["tools.a: must be a tool made by tool() of 'ai', but is a number"]),
    "all at once": (
        "{ a: { needsApproval: true, parameters: 1 }, b: null }",
        [
            "tools.a.description: is required: say in a sentence what the tool does",
            "tools.a.execute: is required; without it nobody can answer the model's calls",
            "tools.a.needsApproval: is not possible: nobody is there to approve a call during a run; remove it",
            "tools.a.parameters: is the name that version 4 of 'ai' used; rename it to `inputSchema`",
            "tools.b: must be a tool made by tool() of 'ai', but is null",
        ],
    ),
}


@pytest.fixture(scope="module")
def refusals(stage_of) -> dict[str, list[str]]:
    """What is said of each of these modules, apart from their having the same names."""
    paths = {name: f"tools/{number}.ts" for number, name in enumerate(REFUSED)}
    stage = stage_of({paths[name]: f"{IMPORTS}export const tools = {REFUSED[name][0]};" for name in REFUSED})
    found: list[Problem] = []
    asyncio.run(read_tools(stage, list(paths.values()), found))
    problems = [problem for problem in sorted(found) if "of this name is already" not in problem.message]
    return {
        name: [str(problem).removeprefix(f"{path}: ") for problem in problems if problem.path == path]
        for name, path in paths.items()
    }


@pytest.mark.parametrize("name", REFUSED)
def test_bad_tools_are_refused(refusals, name):
    """Every reason is told at once, with the path of the field and what to do."""
    assert refusals[name] == REFUSED[name][1]


UNREADABLE = {
    "throws": ('throw new Error("no key");', "the module failed while it was loaded: Error: no key"),
    "never ready": ("await new Promise(() => {});", "the module waits for something that will never happen"),
    "no export": (
        "export default {};",
        "tools: must be an exported object of tools by their names, but there is no export of this name",
    ),
    "network": (
        'await fetch("https://example.org");',
        "the module failed while it was loaded: TypeError: there is no network in the sandbox",
    ),
    "schema never ready": (
        f"export const tools = {{ a: {{ {OK}, inputSchema: jsonSchema(() => new Promise(() => {{}})) }} }};",
        "the module waits for something that will never happen",
    ),
}


@pytest.mark.parametrize(("code", "expected"), UNREADABLE.values(), ids=UNREADABLE.keys())
async def test_modules_that_cannot_be_looked_at(read, code, expected):
    """A module that fails says why, and what its tools would be called stays open."""
    tools, found = await read({"tools/a.ts": code, "tools/b.ts": SUPPORT})
    assert [str(problem) for problem in found] == [f"tools/a.ts: {expected}"]
    assert tools.names is None
    assert [tool.name for tool in tools.tools] == ["lookup_policy", "get-order"]


async def test_two_tools_of_one_name(read):
    """The second of two tools with one name is refused, and both places are named."""
    _, found = await read({"tools/a.ts": SUPPORT, "tools/b.ts": SUPPORT})
    why = "a tool of this name is already in tools/a.ts; tool names are unique in the whole release"
    assert [str(problem) for problem in found] == [
        f"tools/b.ts: tools{name}: {why}" for name in (".lookup_policy", '["get-order"]')
    ]


async def test_a_package_that_is_missing_is_named(read):
    """A tool module's own mistakes are told at its own path, not at that of what trunchray put beside it."""
    _, found = await read({"tools/a.ts": 'import { x } from "./gone";\nexport const tools = { x };'})
    (problem,) = found
    assert problem.path == "tools/a.ts"
    assert "./gone" in problem.message


async def test_without_ai_there_are_no_tools(tmp_path):
    """The package that tools are made with has to be a dependency."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "a.ts").write_text("export const tools = {};")
    found = []
    await read_tools(Stage(tmp_path, tmp_path, {}), ["tools/a.ts"], found)
    (problem,) = found
    assert str(problem) == (
        "tools/a.ts: needs the npm package 'ai', which makes its tools and their schemas; add it (and zod) to the "
        "`dependencies` of package.json"
    )


@pytest.mark.parametrize("version", ["4.3.16", "8.0.0"])
async def test_other_versions_of_ai_are_refused(tmp_path, version):
    """What is known of the AI SDK holds for three major versions; another one is named."""
    package = tmp_path / "node_modules" / "ai"
    package.mkdir(parents=True)
    (package / "package.json").write_text(f'{{"name": "ai", "version": "{version}", "main": "index.js"}}')
    (package / "index.js").write_text("export const asSchema = (schema) => schema;")
    (tmp_path / "a.js").write_text("export const tools = {};")
    found: list[Problem] = []
    await read_tools(Stage(tmp_path, tmp_path, {}), ["a.js"], found)
    assert [str(problem) for problem in found] == [
        f"a.js: uses version {version} of 'ai'; tools need version 5, 6 or 7"
    ]


async def test_a_file_in_the_way_is_named(stage_of):
    """An author's file with the name of the generated one is not overwritten."""
    stage = stage_of({"tools/a.ts": IMPORTS + SUPPORT, "tools/a.ts.trunchray.mjs": "mine"})
    found: list[Problem] = []
    await read_tools(stage, ["tools/a.ts"], found)
    (problem,) = found
    assert str(problem) == "tools/a.ts.trunchray.mjs: has a name that trunchray needs for itself; rename it"
    assert (stage.directory / "tools/a.ts.trunchray.mjs").read_text() == "mine"


async def test_tools_that_differ_between_two_runs_are_refused(read):
    """Descriptions, schemas and names that come from the clock or from chance are no tools to freeze."""
    _, found = await read(
        {
            "tools/clock.ts": f"""
            import {{ randomInt }} from "node:crypto";
            const year = new Date().getFullYear();
            const shared = {{ {OK}, inputSchema: z.object({{}}) }};
            export const tools = {{
              described: tool({{ ...shared, description: `Books of ${{year}}.` }}),
              bounded: tool({{ ...shared, inputSchema: z.object({{ n: z.number().max(Math.random()) }}) }}),
              real: tool({{ ...shared, inputSchema: jsonSchema({{ type: "object", maximum: randomInt(2 ** 40) }}) }}),
              steady: tool({{ ...shared, execute: async () => Date.now() }}),
            }};
            """,
            "tools/names.ts": f"""
            export const tools = {{ [`at_${{Date.now()}}`]: tool({{ {OK}, inputSchema: z.object({{}}) }}) }};
            """,
            "tools/flawed.ts": f"""
            const description = Date.now() < 1_600_000_000_000 ? "Early." : "";
            export const tools = {{ late: tool({{ {OK}, description, inputSchema: z.object({{}}) }}) }};
            """,
        }
    )
    told = {(problem.path, problem.field): problem.message for problem in found}
    assert set(told) == {
        ("tools/clock.ts", "tools.described.description"),
        ("tools/clock.ts", "tools.bounded.inputSchema"),
        ("tools/clock.ts", "tools.real.inputSchema"),
        ("tools/names.ts", "tools"),
        ("tools/flawed.ts", "tools.late.description"),
    }
    assert told["tools/clock.ts", "tools.described.description"] == (
        'differs between two runs: "Books of 2020.", then "Books of 2021."; it depends on the clock or on chance, and '
        "must be written as plain data"
    )
    assert told["tools/clock.ts", "tools.real.inputSchema"].startswith("differs at maximum between two runs: ")
    assert told["tools/names.ts", "tools"].startswith('differs between two runs: the field "at_15778368')
    assert told["tools/flawed.ts", "tools.late.description"].endswith("must be written as plain data)")

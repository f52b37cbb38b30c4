export default { id: "b", prompt: Deno.readTextFileSync("b.txt"), evaluate: { kind: "non_empty" } };

const { readFileSync } = await import("node:" + "fs");
export default { id: "d", prompt: readFileSync("x"), evaluate: { kind: "non_empty" } };

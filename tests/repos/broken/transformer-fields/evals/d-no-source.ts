export default { id: "d-no-source", cases: { transformer: "../transformers/x.ts", sources: {} }, evaluate: { kind: "non_empty" } };

export default { id: "j", cases: { sources: {} }, evaluate: { kind: "non_empty" } };

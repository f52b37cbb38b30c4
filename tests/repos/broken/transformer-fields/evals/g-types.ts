export default { id: "g-types", cases: { transformer: 3, sources: { rows: null } }, evaluate: { kind: "non_empty" } };

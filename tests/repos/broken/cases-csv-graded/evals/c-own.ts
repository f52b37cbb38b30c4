export default { id: "c-own", cases: "./c.csv", evaluate: { kind: "exact", expected: "yes" } };

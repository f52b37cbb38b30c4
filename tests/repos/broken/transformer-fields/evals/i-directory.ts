export default { id: "i-directory", cases: { transformer: "../transformers/x.ts", sources: { rows: "../data", more: "../data/none.txt", all: "/etc/passwd" } }, evaluate: { kind: "non_empty" } };

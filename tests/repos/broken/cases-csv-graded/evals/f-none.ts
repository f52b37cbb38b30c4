export default { id: "f-none", cases: "./f.csv" };

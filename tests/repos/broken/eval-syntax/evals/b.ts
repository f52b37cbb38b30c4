export default { id: "b", promt: "p" };

export default { name: "F", transform() { throw new TypeError("no rows"); } };

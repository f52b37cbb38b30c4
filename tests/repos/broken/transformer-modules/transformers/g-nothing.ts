export default { name: "G", transform() {} };

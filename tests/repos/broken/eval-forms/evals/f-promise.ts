export default Promise.resolve({ id: "f" });

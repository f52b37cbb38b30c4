export default [{ id: "d", prompt: "p" }];

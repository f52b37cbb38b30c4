import { prompt } from "#/prompt";
export default { id: "c", prompt, evaluate: { kind: "non_empty" } };

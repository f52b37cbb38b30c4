import { prompt } from "~/prompt";
export default { id: "b", prompt, evaluate: { kind: "non_empty" } };

import { prompt } from "@/missing";
export default { id: "a", prompt, evaluate: { kind: "non_empty" } };

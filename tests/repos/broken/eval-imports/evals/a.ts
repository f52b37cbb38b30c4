import { z } from "zod";
import { tool } from "@scope/tools/deep";
import { helper } from "./helper";
export default { id: "a", prompt: helper(z, tool), evaluate: { kind: "non_empty" } };

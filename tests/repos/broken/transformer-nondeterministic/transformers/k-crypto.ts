import { createHash, randomUUID } from "node:crypto";

export default {
  name: "T",
  transform: () => [{ id: createHash("sha256").update("k").digest("hex"), prompt: randomUUID() }],
};

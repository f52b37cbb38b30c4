import { jsonSchema, tool } from "ai";

export const tools = {
  lookup_policy: tool({
    description: "Look up a policy by topic.",
    inputSchema: jsonSchema({ type: "object", properties: { topic: { type: "string" } }, required: ["topic"] }),
    execute: ({ topic }) => `${topic}: unopened items may be returned within 30 days.`,
  }),
};

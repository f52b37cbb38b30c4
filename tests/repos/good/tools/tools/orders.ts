import { tool } from "ai";
import { z } from "zod";
import { orders } from "../lib/orders";

export const tools = {
  get_order: tool({
    description: "Look up an order by ID.",
    inputSchema: z.object({ orderId: z.string().describe("Such as order_123.") }),
    execute: async ({ orderId }) => ({ orderId, ...orders[orderId] }),
  }),
};

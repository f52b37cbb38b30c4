export default {
  id: "orders",
  tools: ["get_order", "lookup_policy"],
  cases: [
    { id: "orders.look", prompt: "Is order_123 eligible for a refund?" },
    { id: "orders.none", prompt: "Say hello.", tools: [], evaluate: { kind: "non_empty" } },
  ],
  evaluate: {
    kind: "tool_call_syntax",
    version: 1,
    alternatives: [
      {
        calls: [{ toolName: "get_order", arguments: { orderId: { required: true, acceptedValues: ["order_123"] } } }],
      },
    ],
  },
};

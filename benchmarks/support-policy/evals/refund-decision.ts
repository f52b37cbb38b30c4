import { policy, policyText } from "../lib/policy"

interface Order {
  orderId: string
  price: number
  daysSinceDelivery: number
  opened: boolean
}

type Decision = "refund" | "manager" | "refuse"

function expected(order: Order): Decision {
  if (order.opened || order.daysSinceDelivery > policy.returnDays) return "refuse"
  return order.price > policy.refundLimit ? "manager" : "refund"
}

const orders: Order[] = [
  { orderId: "a-101", price: 49, daysSinceDelivery: 3, opened: false },
  { orderId: "a-102", price: 49, daysSinceDelivery: 31, opened: false },
  { orderId: "a-103", price: 2_400, daysSinceDelivery: 10, opened: false },
  { orderId: "a-104", price: 2_400, daysSinceDelivery: 10, opened: true },
]

// A custom grader: it reads the model's JSON and the case's private data, and gives half the score for each part.
export default {
  id: "refund-decision",
  title: "Refund decision",
  systemPrompt: `Decide on refunds by this policy. ${policyText} Reply with JSON only: {"orderId": "…", "decision": "refund" | "manager" | "refuse"}.`,
  cases: orders.map((order) => ({
    id: `refund-decision.${order.orderId}`,
    prompt:
      `Order ${order.orderId}: ${order.price} euros, delivered ${order.daysSinceDelivery} days ago, ` +
      `${order.opened ? "opened" : "unopened"}. What do you decide?`,
    data: { orderId: order.orderId, decision: expected(order) },
  })),
  evaluate({ output, caseData }: { output: string; caseData: { orderId: string; decision: Decision } }) {
    let answer: { orderId?: unknown; decision?: unknown }
    try {
      answer = JSON.parse(output)
    } catch {
      return { passed: false, score: 0, message: "the answer is not JSON" }
    }
    const rightOrder = answer?.orderId === caseData.orderId
    const rightDecision = answer?.decision === caseData.decision
    return {
      passed: rightOrder && rightDecision,
      score: (Number(rightOrder) + Number(rightDecision)) / 2,
      message: rightDecision ? null : `decided ${JSON.stringify(answer?.decision)}, the policy says "${caseData.decision}"`,
      details: { rightOrder, rightDecision },
    }
  },
}

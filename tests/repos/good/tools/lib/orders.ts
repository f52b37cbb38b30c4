export const orders = { order_123: { status: "delivered", eligible: true } } as Record<string, object>;

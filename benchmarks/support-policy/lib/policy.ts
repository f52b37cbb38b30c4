/** The shop's rules, as prompts state them and as graders apply them. */
export interface Policy {
  returnDays: number
  holidayReturnDays: number
  refundLimit: number
}

export const policy: Policy = {
  returnDays: 30,
  holidayReturnDays: 60,
  refundLimit: 1_000,
}

export const policyText = [
  `Unopened items may be returned within ${policy.returnDays} days.`,
  `Items bought in December may be returned within ${policy.holidayReturnDays} days.`,
  `Refunds above ${policy.refundLimit} euros need a manager.`,
  "Opened software is never taken back.",
].join(" ")

// Passages of text: what was asked, said and done.

import { ask } from "./api.js";
import { count, element, showProblem } from "./elements.js";

const TITLES = {
  system: "System prompt",
  prompt: "Prompt",
  private: "For grading only",
  answer: "Model",
  call: "Tool call",
  result: "Tool result",
  limit: "Limit reached",
  attempt: "Attempt",
  message: "Verdict",
  check: "Check",
  details: "Details",
};

/** The passages of something that `query` names, the first of which has the number `start`. */
export function passageList(passages, query, start = 0) {
  const items = passages.map((passage, place) => passageItem(passage, { ...query, start: start + place }));
  return element("ol", { className: "passages", start: start + 1 }, ...items);
}

function passageItem(passage, query) {
  const text = element("pre", { dir: "auto" }, passage.text);
  const title = element("h4", {}, TITLES[passage.role] ?? passage.role, " ", element("code", {}, passage.name));
  const rest = passage.length > passage.text.length ? moreButton(passage, text, query) : null;
  return element("li", { className: passage.role }, title, text, rest);
}

/** What of a passage is not sent at first can be had. */
function moreButton(passage, text, query) {
  const button = element("button", { type: "button" }, `Show all ${count(passage.length)} characters`);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      text.textContent = await ask("passage", query);
      button.remove();
    } catch (error) {
      button.disabled = false;
      showProblem(error);
    }
  });
  return button;
}

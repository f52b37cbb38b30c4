// One answer to a case, as a column: its verdict, what it took, and all that was said and done.

import { ask } from "./api.js";
import { count, dollars, element, facts, outcome, score, seconds, showProblem } from "./elements.js";
import { passageList } from "./passages.js";

/** A column for a trial of the list, under a name. It is filled when the answer is there. */
export function answerColumn(trial, name) {
  const column = element("article", { ariaBusy: "true" }, element("h3", {}, outcome(trial.outcome), " ", name));
  fill(column, { id: trial.case, run: trial.run, model: trial.model, attempt: trial.attempt });
  return column;
}

/** `named` is what the server knows the trial by. */
async function fill(column, named) {
  try {
    const answer = await ask("answer", named);
    column.append(...contentOf(answer, named));
  } catch (error) {
    column.append(element("p", { role: "alert" }, error.message));
  }
  column.ariaBusy = "false";
}

function contentOf(answer, named) {
  const trace = element("div", {}, passageList(answer.passages, named));
  return [
    facts(figures(answer)),
    passageList(answer.remarks, { ...named, remarks: "" }),
    trace,
    ...moreButton(answer, named, trace),
    element("details", {}, element("summary", {}, "Where and when"), facts(origin(answer))),
  ];
}

function figures(answer) {
  const { usage, latency } = answer;
  return [
    ["Score", answer.score === null ? null : score(answer.score)],
    ["Failure", answer.failure],
    ["Ended", answer.finish_reason],
    ["Tokens", usage && `${count(usage.input ?? 0)} read, ${count(usage.output ?? 0)} written`],
    ["Cost", answer.cost_usd === null ? null : dollars(answer.cost_usd)],
    ["Time", `${seconds(latency.total)}: model ${seconds(latency.model)}, tools ${seconds(latency.tools)}`],
    ["Earlier errors", answer.earlier_errors || null],
    ["Graded anew", answer.reused ? "a stored answer" : null],
    ["Retries", answer.retries ? `${answer.retries}, ${seconds(answer.rate_limit_wait ?? 0)} of waiting` : null],
    ["Cache", answer.cache_hits ? `${answer.cache_hits} hits, ${count(answer.saved_tokens)} tokens saved` : null],
  ];
}

function origin(answer) {
  return [
    ["Began", answer.began],
    ["Model", answer.model],
    ["Request", answer.request_id],
    ["Worker", answer.worker],
    ["Evaluator", answer.evaluator_digest],
    ["Trial", answer.trial_key],
  ];
}

/** Long traces come in pieces: a button for the next one, while there is one. */
function moreButton(answer, named, trace) {
  let start = answer.passages.length;
  if (start >= answer.count) {
    return [];
  }
  const button = element("button", { type: "button" }, `Show more of ${count(answer.count)} steps`);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const next = await ask("answer", { ...named, start });
      trace.append(passageList(next.passages, named, start));
      start += next.passages.length;
      button.hidden = start >= answer.count;
    } catch (error) {
      showProblem(error);
    }
    button.disabled = false;
  });
  return [button];
}

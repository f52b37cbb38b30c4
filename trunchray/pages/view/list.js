// The list of trials. What is searched for stands in the URL, so that it can be passed on.

import { ask, listUrl, searchOf } from "./api.js";
import { count, dollars, element, onKeys, outcome, score, seconds, showProblem } from "./elements.js";

const LOOK_EVERY = 5000; // milliseconds between two looks at how far the runs are
const WAIT_FOR_MORE = 250; // milliseconds after a key, before a text is searched for

const form = document.getElementById("filters");
const body = document.querySelector("#trials tbody");
const total = document.getElementById("total");

let known = { runs: [] };
let asking = new AbortController();
let typing = 0;
let lost = false; // the server did not answer the last time

function query() {
  return new URLSearchParams(location.search);
}

/** Go on with other parts of the search; from the first page, unless another one is asked for. */
function search(changes, { replace = false } = {}) {
  const url = listUrl(query(), { page: null, ...changes });
  if (replace) {
    history.replaceState(null, "", url);
  } else {
    history.pushState(null, "", url);
  }
  return show();
}

/** Show what the URL asks for. */
async function show() {
  asking.abort();
  asking = new AbortController();
  document.body.ariaBusy = "true";
  showSorting();
  try {
    const found = await ask("trials", searchOf(query()), asking.signal);
    showProblem(null);
    showPage(found);
  } catch (error) {
    if (error.name === "AbortError") {
      return;
    }
    showProblem(error);
  }
  document.body.ariaBusy = "false";
}

function showPage(found) {
  const focused = [...body.rows].findIndex((row) => row.contains(document.activeElement));
  body.replaceChildren(...found.trials.map(trialRow));
  if (focused >= 0) {
    focusRow(focused);
  }
  total.textContent = `${count(found.total)} ${found.total === 1 ? "trial" : "trials"}`;
  document.getElementById("page").textContent = `Page ${count(found.page)} of ${count(found.pages)}`;
  document.getElementById("before").disabled = found.page <= 1;
  document.getElementById("after").disabled = found.page >= found.pages;
}

function trialRow(trial) {
  const several = known.runs.length > 1;
  const attempts = Math.max(1, ...known.runs.map((run) => run.attempts));
  const where = [several ? trial.run : null, attempts > 1 ? `attempt ${trial.attempt}` : null].filter(Boolean);
  return element(
    "tr",
    {},
    element("td", {}, outcome(trial.outcome)),
    names(element("a", { href: caseUrl(trial) }, trial.case), small(trial.eval)),
    names(trial.model, where.length ? small(where.join(" · ")) : null),
    element("td", { className: "excerpt" }, excerpt(trial)),
    element("td", { className: "number" }, score(trial.score)),
    element("td", { className: "number" }, count(trial.tokens)),
    element("td", { className: "number" }, dollars(trial.cost)),
    element("td", { className: "number" }, seconds(trial.seconds)),
  );
}

/** A cell as wide as what it says, up to a bound; a cell itself would be as narrow as it can. */
function names(...said) {
  return element("td", { className: "name" }, element("div", {}, ...said));
}

function small(text) {
  return element("small", {}, text);
}

function excerpt(trial) {
  const why = [trial.failure, trial.message].filter(Boolean).join(": ");
  return element("div", {}, why ? element("em", {}, why) : null, why && trial.output ? " " : null, trial.output);
}

function caseUrl(trial) {
  const target = searchOf(query());
  target.set("id", trial.case);
  target.set("first", `${trial.run}|${trial.attempt}|${trial.model}`);
  return `/case?${target}`;
}

/** Let the form say what the URL says; while people fill it in, it is the other way round. */
function fillForm() {
  for (const field of form.querySelectorAll("[name]")) {
    field.value = query().get(field.name) ?? "";
  }
}

function showSorting() {
  const given = query();
  const sorted = given.get("sort") ?? "case";
  for (const button of document.querySelectorAll("[data-sort]")) {
    const direction = given.get("order") === "down" ? "descending" : "ascending";
    button.parentElement.ariaSort = button.dataset.sort === sorted ? direction : "none";
  }
}

/** Have the runs of the moment, and what they offer to choose from. */
async function look() {
  const before = known.runs.map((run) => run.version).join();
  known = await ask("runs");
  document.getElementById("runs").replaceChildren(...known.runs.map(runState));
  const names = (list) => [...new Set(known.runs.flatMap(list))];
  offer("run", names((run) => run.name));
  offer("model", names((run) => run.models));
  offer("eval", names((run) => run.evals));
  offer("attempt", Array.from({ length: Math.max(...known.runs.map((run) => run.attempts)) }, (_, place) => place + 1));
  return known.runs.map((run) => run.version).join() !== before;
}

function runState(run) {
  const share = `${count(run.rows)} of ${count(run.planned)}`;
  const shown = element("li", {}, element("b", {}, run.name), ` ${run.title} · ${run.state} · ${share} trials`);
  shown.append(...run.notes.map((note) => element("small", { className: "note" }, note)));
  return shown;
}

/** Let a filter offer these values; one with nothing to choose is hidden. */
function offer(name, values) {
  const field = form.elements[name];
  const offered = [...field.options].slice(1).map((option) => option.value);
  field.parentElement.hidden = values.length < 2;
  if (offered.join("\0") !== values.join("\0")) {
    field.replaceChildren(field.options[0], ...values.map((value) => element("option", { value }, value)));
    field.value = query().get(name) ?? "";
  }
}

function focusRow(place) {
  const rows = body.rows;
  rows[Math.max(0, Math.min(place, rows.length - 1))]?.querySelector("a").focus();
}

function step(by) {
  const focused = [...body.rows].findIndex((row) => row.contains(document.activeElement));
  focusRow(focused < 0 ? 0 : focused + by);
}

async function turn(by) {
  const button = document.getElementById(by < 0 ? "before" : "after");
  if (!button.disabled) {
    await search({ page: Number(query().get("page") ?? 1) + by });
    scrollTo({ top: 0 });
  }
}

function sortBy(key) {
  const same = (query().get("sort") ?? "case") === key;
  const down = same && query().get("order") !== "down";
  search({ sort: key === "case" ? null : key, order: down ? "down" : null });
}

form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", (event) => {
  const { name, value } = event.target;
  const isText = name === "text";
  const changes = { text: form.elements.text.value, [name]: value }; // the text may still be waiting for its search
  clearTimeout(typing);
  typing = setTimeout(() => search(changes, { replace: isText }), isText ? WAIT_FOR_MORE : 0);
});
form.addEventListener("reset", () => {
  clearTimeout(typing);
  history.pushState(null, "", "/");
  show();
});
for (const button of document.querySelectorAll("[data-sort]")) {
  button.addEventListener("click", () => sortBy(button.dataset.sort));
}
document.getElementById("before").addEventListener("click", () => turn(-1));
document.getElementById("after").addEventListener("click", () => turn(1));
window.addEventListener("popstate", () => {
  fillForm();
  show();
});
onKeys({
  j: () => step(1),
  k: () => step(-1),
  n: () => turn(1),
  p: () => turn(-1),
  "/": () => form.elements.text.focus(),
  Escape: () => document.activeElement.blur(),
});

/** Look whether there is anything new, and show it. */
async function refresh() {
  try {
    if ((await look()) || lost) {
      lost = false;
      await show();
    }
  } catch (error) {
    lost = true;
    showProblem(error);
  }
}

setInterval(() => document.visibilityState === "visible" && refresh(), LOOK_EVERY);

await look().catch(showProblem);
fillForm();
await show();

// One case: what it asks, and the answers to it side by side. Which of them are shown stands in the URL.

import { answerColumn } from "./answer.js";
import { ask, listUrl, searchOf } from "./api.js";
import { count, element, facts, onKeys, outcome, prose, showProblem } from "./elements.js";
import { passageList } from "./passages.js";

const SIDE_BY_SIDE = 3; // answers shown unless others are chosen
const HIDDEN = {
  1: "Expected answers and data are hidden; `trunchray view --show-private` shows them.",
  2: "Expected answers, data and what evaluators said are hidden; `trunchray view --show-private` shows them.",
};

const query = new URLSearchParams(location.search);
let id = query.get("id") ?? "";
const columns = new Map(); // those made so far, by the keys of their answers

/** What tells the answers to a case apart; models come last, because their names may hold anything. */
function keyOf(answer) {
  return `${answer.run}|${answer.attempt}|${answer.model}`;
}

/** A model, with its run and attempt where that makes a difference. */
function nameOf(answer, answers) {
  const differ = (field) => answers.some((other) => other[field] !== answer[field]);
  const run = differ("run") ? answer.run : null;
  const attempt = differ("attempt") ? `attempt ${answer.attempt}` : null;
  return [answer.model, run, attempt].filter(Boolean).join(" · ");
}

/** The answers to show: those that the URL names, or the one that was clicked and others of the same attempt. */
function chosen(answers) {
  if (query.has("show")) {
    const named = query.getAll("show");
    return answers.filter((answer) => named.includes(keyOf(answer)));
  }
  const first = answers.find((answer) => keyOf(answer) === query.get("first")) ?? answers[0];
  const others = answers.filter((answer) => answer !== first && answer.attempt === first.attempt);
  return first ? [first, ...others].slice(0, SIDE_BY_SIDE) : [];
}

function showCase(found) {
  const several = found.versions.length > 1;
  document.title = `${id} · trunchray`;
  const place = document.getElementById("case");
  place.replaceChildren(element("h2", {}, id), ...found.versions.map((version) => versionOf(version, several)));
  if (found.hidden.length) {
    place.append(element("p", { className: "note" }, ...prose(HIDDEN[found.hidden.length])));
  }
}

/** The case as it is in some of the runs. */
function versionOf(version, several) {
  return element(
    "article",
    {},
    several ? element("h3", {}, `As in ${version.runs.join(", ")}`) : null,
    element("p", { className: "title" }, version.title),
    version.description ? element("p", {}, version.description) : null,
    facts([
      ["Eval", version.eval],
      ["Source", version.source],
      ["Checks", version.checks.join(", ")],
      ["Tools", version.tools.join(", ")],
    ]),
    passageList(version.passages, { id, run: version.runs[0] }),
  );
}

function showAnswers(answers) {
  const shown = chosen(answers);
  document.getElementById("answered").hidden = false;
  showChoice(answers, shown);
  const place = document.getElementById("answers");
  place.replaceChildren(...shown.map((answer) => columnOf(answer, answers)));
  if (!answers.length) {
    place.append(element("p", {}, "There are no answers to this case yet."));
  }
}

function columnOf(answer, answers) {
  const key = keyOf(answer);
  if (!columns.has(key)) {
    columns.set(key, answerColumn(answer, nameOf(answer, answers)));
  }
  return columns.get(key);
}

/** Buttons that show and hide each answer. */
function showChoice(answers, shown) {
  const keys = new Set(shown.map(keyOf));
  const items = answers.map((answer) => {
    const button = element("button", { type: "button" }, outcome(answer.outcome), " ", nameOf(answer, answers));
    button.ariaPressed = String(keys.has(keyOf(answer)));
    button.addEventListener("click", () => {
      choose(toggled(keys, keyOf(answer)));
      showAnswers(answers);
      document.getElementById("choice").children[answers.indexOf(answer)].firstChild.focus();
    });
    return element("li", {}, button);
  });
  document.getElementById("choice").replaceChildren(...items);
}

function toggled(keys, key) {
  const left = [...keys].filter((other) => other !== key);
  return left.length < keys.size ? left : [...left, key];
}

/** Say in the URL which answers are shown; an empty name stands for none. */
function choose(keys) {
  query.delete("show");
  for (const key of keys.length ? keys : [""]) {
    query.append("show", key);
  }
  history.replaceState(null, "", `/case?${query}`);
}

/** Lead to the cases before and after this one in the list. */
async function showBeside() {
  const beside = await ask("beside", [["id", id], ...searchOf(query)]);
  if (beside) {
    document.getElementById("beside").hidden = false;
    document.getElementById("place").textContent = `Case ${count(beside.place)} of ${count(beside.of)}`;
    lead("before", beside.before);
    lead("after", beside.after);
  }
}

function lead(name, target) {
  if (target !== null) {
    const next = searchOf(query);
    next.set("id", target);
    document.getElementById(name).href = `/case?${next}`;
  }
}

function follow(name) {
  const { href } = document.getElementById(name);
  if (href) {
    location.href = href;
  }
}

document.getElementById("list").href = listUrl(query);
onKeys({
  j: () => follow("after"),
  k: () => follow("before"),
  Escape: () => follow("list"),
});

try {
  const found = await ask("case", { id });
  id = found.id; // the URL may have the name that its author gave it
  showCase(found);
  showAnswers(found.answers);
  await showBeside();
} catch (error) {
  showProblem(error);
}

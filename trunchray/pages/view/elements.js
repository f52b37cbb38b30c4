// Elements of a page. Whatever was written by models and authors becomes text nodes, never markup.

const SIGNS = { passed: "✓", failed: "✗", error: "!" };

/** An element with these properties; children are elements or texts, and null is none. */
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null && child !== undefined).map(asNode));
  return made;
}

function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

/** A sentence, in which `backticks` enclose code. */
export function prose(text) {
  return text.split("`").map((part, number) => (number % 2 ? element("code", {}, part) : part));
}

/** An outcome as sign and word, so that colour alone says nothing. */
export function outcome(name) {
  const sign = element("span", { className: "sign", ariaHidden: "true" }, SIGNS[name] ?? "?");
  return element("span", { className: `outcome ${name in SIGNS ? name : ""}` }, sign, " ", name);
}

const grouped = new Intl.NumberFormat("en");
const precise = new Intl.NumberFormat("en", { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });

/** A whole number with its thousands apart. */
export function count(number) {
  return grouped.format(number);
}

export function score(number) {
  return number === null ? "–" : number.toFixed(3).replace(/\.?0+$/, "");
}

export function dollars(number) {
  return number === null ? "–" : `$${number === 0 ? 0 : precise.format(number)}`;
}

export function seconds(number) {
  return number > 0 && number < 0.001 ? "< 0.001 s" : `${precise.format(number)} s`;
}

/** What there is to say, as pairs of a term and its value; pairs without a value are left out. */
export function facts(pairs) {
  const told = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  const lines = told.map(([term, value]) => element("div", {}, element("dt", {}, term), element("dd", {}, value)));
  return element("dl", {}, ...lines);
}

/** Show what went wrong, or that nothing does any more. */
export function showProblem(error) {
  const place = document.getElementById("problem");
  place.hidden = !error;
  place.textContent = error ? error.message : "";
}

/** Call what a key stands for, unless somebody is writing or the browser is meant. */
export function onKeys(actions) {
  document.addEventListener("keydown", (event) => {
    const writing = event.target.matches("input, select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey || (writing && event.key !== "Escape")) {
      return;
    }
    const action = actions[event.key];
    if (action) {
      event.preventDefault();
      action();
    }
  });
}

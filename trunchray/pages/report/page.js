// Adds to the page what it can do without: charts, sorting, links that open what they lead to.

const data = JSON.parse(document.getElementById("data").textContent);
const narrow = 560; // pixels of a chart's width below which it makes do with less

const seconds = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const dollars = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const percent = new Intl.NumberFormat("en", { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 });

const drawings = { cost: drawCost, latency: drawLatency };

for (const figure of document.querySelectorAll("figure[data-chart]")) {
  const { chart } = figure.dataset;
  figure.hidden = false;
  const redraw = () => show(figure, drawings[chart](data[chart], Math.max(figure.clientWidth, 280)));
  new ResizeObserver(redraw).observe(figure);
}
for (const table of document.querySelectorAll("table.sortable")) makeSortable(table);

window.addEventListener("hashchange", openTarget);
openTarget();

window.addEventListener("beforeprint", () => {
  for (const panel of document.querySelectorAll("details")) panel.open = true;
});

/** Puts a drawing in its place, without the style element that the page's policy does not know; page.css has its rules. */
function show(figure, drawing) {
  drawing.querySelector("style")?.remove();
  drawing.setAttribute("role", "img");
  figure.querySelector(".canvas").replaceChildren(drawing);
}

/** Pass rate over US dollars per 1,000 trials, each model a numbered mark. */
function drawCost(models, width) {
  const at = { x: "cost", y: "rate" };
  const [marginLeft, marginRight] = [48, 24];
  const costs = models.map((model) => model.cost);
  const x = axisOf(costs, "USD per 1,000 trials", dollars.format, width - marginLeft - marginRight);
  const front = models.filter((model) => model.front).sort((one, other) => one.cost - other.cost);
  return Plot.plot({
    className: "chart",
    ariaLabel: "Pass rate over US dollars per 1,000 trials",
    width,
    height: Math.min(440, Math.max(300, width * 0.6)),
    marginLeft,
    marginRight,
    marginTop: 28,
    marginBottom: 40,
    x: x.scale,
    y: { label: "Pass rate", tickFormat: percent.format, grid: true, nice: true, zero: false },
    marks: [
      ...x.marks,
      Plot.line(front, { ...at, curve: "step-after", stroke: "var(--accent)", strokeDasharray: "4 3" }),
      Plot.ruleX(models, { x: "cost", y1: "low", y2: "high", strokeOpacity: 0.5 }),
      Plot.dot(models, {
        ...at,
        r: 9,
        stroke: "var(--accent)",
        strokeWidth: 1.5,
        fill: (model) => (model.front ? "var(--accent)" : "var(--paper)"),
      }),
      Plot.text(models, {
        ...at,
        text: "place",
        fontSize: 10,
        fontWeight: 600,
        fill: (model) => (model.front ? "var(--on-accent)" : "var(--ink)"),
      }),
      Plot.tip(models, Plot.pointer({ ...at, title: describeCost })),
    ],
  });
}

function describeCost({ place, name, cost, rate, low, high }) {
  const interval = `${percent.format(low)} to ${percent.format(high)}`;
  const usd = `${dollars.format(cost)} USD per 1,000 trials`;
  return `${place} ${shortened(name, 40)}\n${percent.format(rate)} (${interval})\n${usd}`;
}

/** The median and the 95th percentile of each model, best model on top. */
function drawLatency(models, width) {
  const label = ({ place, name }) => `${shortened(name, width < narrow ? 16 : 30)}  ${place}`;
  const marginLeft = 20 + 6.5 * Math.max(...models.map((model) => label(model).length));
  const marginRight = 24;
  const ends = models.flatMap(({ p50, p95 }) => [p50, p95]);
  const x = axisOf(ends, "Seconds", seconds.format, width - marginLeft - marginRight);
  return Plot.plot({
    className: "chart",
    ariaLabel: "Seconds that model and tools took in a trial, by model",
    width,
    height: 70 + 22 * models.length,
    marginLeft,
    marginRight,
    marginBottom: 40,
    x: x.scale,
    y: { domain: models.map(label), label: null },
    marks: [
      ...x.marks,
      Plot.link(models, { x1: "p50", x2: "p95", y1: label, y2: label, strokeOpacity: 0.6 }),
      Plot.dot(models, { x: "p50", y: label, r: 5, fill: "var(--accent)" }),
      Plot.tickX(models, { x: "p95", y: label, insetTop: 4, insetBottom: 4, strokeWidth: 3, stroke: "var(--accent)" }),
      Plot.tip(models, Plot.pointerY({ x: "p95", y: label, title: describeLatency })),
    ],
  });
}

function describeLatency({ place, name, p50, p95 }) {
  return `${place} ${shortened(name, 40)}\np50 ${seconds.format(p50)} s\np95 ${seconds.format(p95)} s`;
}

/** An axis of so many pixels: logarithmic where values are far apart, which its label says, else from 0. */
function axisOf(values, label, tickFormat, pixels) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  if (least > 0 && most > 20 * least) {
    const domain = [least / 1.3, most * 1.3];
    const place = d3.scaleLog(domain, [0, pixels]);
    const ticks = roomiest(logarithmicTicks(domain), place, tickFormat);
    return axis({ type: "log", domain, label: `${label} (logarithmic scale)` }, ticks, tickFormat);
  }
  const domain = [0, most * 1.05 || 1];
  const some = [5, 4, 3, 2, 1].map((count) => d3.ticks(...domain, count));
  const ticks = roomiest(some, d3.scaleLinear(domain, [0, pixels]), tickFormat);
  return axis({ type: "linear", domain, label }, ticks, tickFormat);
}

/** A scale and what is drawn of it. Labels are given as texts: of a logarithmic scale some would be left out else. */
function axis(scale, ticks, tickFormat) {
  return { scale, marks: [Plot.gridX(ticks), Plot.axisX(ticks, { text: (tick) => tickFormat(tick) })] };
}

/** Choices from many to few: powers of ten with multiples, powers of ten, every second one, and so on. */
function logarithmicTicks([least, most]) {
  const powers = d3.range(Math.floor(Math.log10(least)), Math.ceil(Math.log10(most)) + 1);
  const within = (ticks) => ticks.filter((tick) => least <= tick && tick <= most);
  const multiples = [[1, 2, 5], [1, 3], [1]].map((steps) =>
    within(powers.flatMap((power) => steps.map((step) => step * 10 ** power))),
  );
  return [...multiples, ...[2, 3, 4, 6].map((each) => multiples.at(-1).filter((_, n) => n % each === 0))];
}

/** The first choice of ticks whose labels do not touch each other; the last one if all do. */
function roomiest(choices, place, tickFormat) {
  const half = (tick) => 3.5 * tickFormat(tick).length + 4; // pixels of a label on either side of its tick
  const touch = (one, other) => place(other) - place(one) < half(one) + half(other);
  return choices.find((ticks) => !d3.pairs(ticks).some(([one, other]) => touch(one, other))) ?? choices.at(-1);
}

function shortened(text, most) {
  const characters = [...text];
  return characters.length <= most ? text : `${characters.slice(0, most - 1).join("")}…`;
}

/** Makes a button of each heading, which sorts by its column: figures from high to low first, words from A to Z. */
function makeSortable(table) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const direction = nextDirection(heading, isNumeric(table, column));
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", direction);
      sortRows(table, column, direction === "ascending" ? 1 : -1);
    });
  });
}

function nextDirection(heading, numeric) {
  const [first, second] = numeric ? ["descending", "ascending"] : ["ascending", "descending"];
  return heading.getAttribute("aria-sort") === first ? second : first;
}

function isNumeric(table, column) {
  return [...table.tBodies[0].rows].some((row) => row.cells[column].dataset.value !== undefined);
}

/** Rows without a figure in the column stay last, whichever way. */
function sortRows(table, column, sign) {
  const numeric = isNumeric(table, column);
  const [body] = table.tBodies;
  const keyed = [...body.rows].map((row) => ({ row, key: keyOf(row.cells[column], numeric) }));
  const compare = (one, other) => {
    if (one.key === null || other.key === null) return (one.key === null) - (other.key === null);
    return sign * (numeric ? one.key - other.key : one.key.localeCompare(other.key, "en", { numeric: true }));
  };
  body.append(...keyed.sort(compare).map(({ row }) => row));
}

function keyOf(cell, numeric) {
  if (!numeric) return cell.textContent;
  return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
}

/** Opens the panel that the address names. */
function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.matches("details")) target.open = true;
}

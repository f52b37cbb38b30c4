/** JSON Lines files and compiled case lines: made here so that JavaScript's own rules decide every byte. */
import { makeWriter } from "./plain.mjs";

const MAX_TITLE = 120; // UTF-16 units
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const write = makeWriter();

/**
 * The rows of a JSON Lines file as JSON texts: `rows`, an array of `[line, value]`, and `flaws`, an array of
 * `[line, message]`. Lines count from 1 and end at "\n" and nowhere else: U+2028 may occur inside a row.
 */
export function readRows(bytes) {
  const rows = [];
  const flaws = [];
  for (const [line, content] of lines(bytes)) {
    try {
      const text = decode(content, line);
      if (!text.trim()) continue;
      rows.push(`[${line},${strictly(JSON.parse(text))}]`);
    } catch (error) {
      flaws.push([line, error.message.slice(0, 300)]);
    }
  }
  return { rows: `[${rows}]`, flaws: JSON.stringify(flaws) };
}

/** The rows as one array over many lines. */
export function indented(bytes) {
  const values = [];
  for (const [line, content] of lines(bytes)) values.push(JSON.parse(decode(content, line)));
  return `${JSON.stringify(values, null, 2)}\n`;
}

/** The case lines of one eval. `rows` are the bytes of its data file, or null. */
export function caseLines(evaluation, rows, { path, rowsPath, evaluate }) {
  const shared = evaluate ?? evaluation.evaluate;
  let lines = "";
  for (const [row, authored] of authoredCases(evaluation, rows)) {
    const compiled = {
      id: authored.id,
      evalId: evaluation.id,
      title: title(evaluation, authored, row),
      description: authored.description ?? evaluation.description ?? "",
      input: {
        prompt: authored.prompt.trim(),
        systemPrompt: authored.systemPrompt ?? evaluation.systemPrompt ?? null,
        tools: authored.tools ?? evaluation.tools ?? [],
      },
      data: authored.data ?? null,
      checks: { evaluate: authored.evaluate ?? shared },
      source: { path: rowsPath ?? path, row },
    };
    lines += `${JSON.stringify(compiled)}\n`;
  }
  return lines;
}

function* authoredCases(evaluation, rows) {
  if (rows) {
    for (const [line, content] of lines(rows)) {
      const text = decode(content, line);
      if (text.trim()) yield [line, JSON.parse(text)];
    }
  } else if (Array.isArray(evaluation.cases)) {
    for (const [index, authored] of evaluation.cases.entries()) yield [index + 1, authored];
  } else {
    yield [null, { ...evaluation, evaluate: undefined }]; // what the whole eval asks for is `shared`
  }
}

function title(evaluation, authored, row) {
  const name = evaluation.title ?? evaluation.id;
  const whole = row === null ? name : `${name} — ${authored.id}`;
  const cut = whole.slice(0, MAX_TITLE);
  return cut.isWellFormed() ? cut : cut.slice(0, -1); // a pair was cut in two; authored text has no other halves
}

function* lines(bytes) {
  for (let start = 0, line = 1; start < bytes.length; line++) {
    const found = bytes.indexOf(10, start);
    const end = found < 0 ? bytes.length : found;
    yield [line, bytes.subarray(start, bytes[end - 1] === 13 && end > start ? end - 1 : end)];
    start = end + 1;
  }
}

function decode(content, line) {
  let text;
  try {
    text = decoder.decode(content);
  } catch {
    throw new Error("is not valid UTF-8");
  }
  return line === 1 && text.startsWith("\uFEFF") ? text.slice(1) : text;
}

function strictly(value) {
  const { flaws, value: text } = write(value, { maxChars: Infinity, maxFlaws: 1 });
  const [flaw] = JSON.parse(flaws);
  if (flaw) throw new Error(`${flaw.path || "the row"} ${flaw.message}`);
  return text;
}

// Questions to the server that this page came from.

/** The answer to a question; `query` is anything that URLSearchParams takes. Throws an Error to be shown. */
export async function ask(question, query = {}, signal = undefined) {
  const response = await reach(`/api/${question}?${new URLSearchParams(query)}`, signal);
  const answer = await response.json();
  if (!response.ok) {
    throw new Error(answer.error);
  }
  return answer;
}

async function reach(url, signal) {
  try {
    return await fetch(url, { signal });
  } catch (error) {
    if (error.name === "AbortError") {
      throw error;
    }
    throw new Error("The server does not answer. Is `trunchray view` still running?");
  }
}

const SEARCH = ["run", "model", "eval", "outcome", "attempt", "text", "sort", "order", "page"];

/** What of a query is the search for trials; `changes` replace parts of it, and null or "" takes them away. */
export function searchOf(query, changes = {}) {
  const search = new URLSearchParams();
  for (const name of SEARCH) {
    const value = name in changes ? changes[name] : query.get(name);
    if (value) {
      search.set(name, value);
    }
  }
  return search;
}

/** Where the list of the trials is that a query searches for, with the same `changes`. */
export function listUrl(query, changes = {}) {
  const search = searchOf(query, changes).toString();
  return search ? `/?${search}` : "/";
}

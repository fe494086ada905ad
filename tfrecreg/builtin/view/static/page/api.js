/** The one place that asks the server. */

/** What the server refused, in its words. */
class Refused extends Error {
  constructor(status, message, hint) {
    super(message);
    this.status = status;
    this.hint = hint;
  }
}

export function isAbort(error) {
  return error instanceof DOMException && error.name === 'AbortError';
}

/** The address of a path with its question; empty values are left out, lists are repeated. */
export function address(path, question = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(question)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== '' && each !== null && each !== undefined && each !== false)
        query.append(name, String(each));
    }
  }
  return query.size ? `${path}?${query}` : path;
}

/** Ask for a path, and return its JSON. */
export async function ask(path, question = {}, signal) {
  let answer;
  try {
    answer = await fetch(address(path, question), { signal });
  } catch (error) {
    if (isAbort(error) || error instanceof Refused) throw error;
    throw new Refused(0, 'the viewer does not answer', 'start tfrecreg view again');
  }
  if (answer.ok) return answer.json();
  const told = await answer.text();
  let error = { message: told.trim() || `status ${answer.status}`, hint: null };
  try {
    error = JSON.parse(told).error ?? error;
  } catch {
    // One line of text: the answer of a server that asks for its token.
  }
  throw new Refused(answer.status, error.message, error.hint);
}

/**
 * A function that asks one question at a time: a new one aborts the last, whose answer never comes.
 * Its `cancel` aborts the last, and refuses it where there is a reason.
 */
export function lastOnly() {
  let controller = new AbortController();
  const last = (path, question = {}) => {
    controller.abort();
    controller = new AbortController();
    return ask(path, question, controller.signal);
  };
  last.cancel = (reason = '') =>
    controller.abort(reason ? new Refused(0, reason, null) : undefined);
  return last;
}

export function words(error) {
  if (error instanceof Refused)
    return error.hint ? `${error.message} (${error.hint})` : error.message;
  return String(error);
}

/**
 * What the server answers, as types, and the one place that asks it.
 *
 * @typedef {{id: number, name: string, kind: string}} Target
 * @typedef {{name: string, versions: string[], build: boolean, records: number | null,
 *   bytes: number | null}} Dataset
 * @typedef {{targets: Target[], datasets: Dataset[], registry: string | null}} Targets
 * @typedef {{number: number, name: string, color: string}} Class
 * @typedef {{state: string, records: number}} Shard
 * @typedef {{state: string, done?: number, of?: number, why?: string}} Catalog
 * @typedef {{id: number, name: string, kind: string, digest: string | null, records: number,
 *   splits: {name: string, records: number}[], shards: Shard[],
 *   columns: {name: string, type: string}[] | null, classes: Class[], notes: string[],
 *   catalog: Catalog, commands: {cli: string, python: string}}} About
 * @typedef {{selection: string, count: number, of: number, milliseconds: number, note?: string, cli: string,
 *   python: string, toml: boolean}} Selection
 * @typedef {{x0: number, y0: number, x1: number, y1: number, class: string | null,
 *   number: number | null, color: string}} Box
 * @typedef {{points: number[][], color: string, class?: string | null, number?: number | null}} Polygon
 * @typedef {{at: number, split: string, shard: number, record: number, key: string | null,
 *   label: string | null, caption: string, thumb: string | null, width: number | null,
 *   height: number | null, kind: string, feature: string | null, text: string | null, boxes: Box[],
 *   polygons: Polygon[], points: any[], findings: string[], problem: string | null}} Rec
 * @typedef {{code: string, severity: string, message: string, hint: string | null}} Finding
 * @typedef {{name: string, type: string, count: number, unit: string, kind: string, values: any[],
 *   text: string | null, hex: string | null, note: string | null}} Feature
 * @typedef {{shard: number, record: number}} Place
 * @typedef {Rec & {shard_name: string, offset: number, length: number | null, digest: string | null,
 *   features: Feature[], ledger: Record<string, any> | null, raw: string | null, hex?: string,
 *   previous: Place | null, next: Place | null}} RawWhole
 * @typedef {Omit<RawWhole, 'findings'> & {findings: Finding[]}} Whole
 * @typedef {{column: string, title: string, kind: string, values?: {value: any, text: string,
 *   count: number, of: number, where: string, color?: string}[], edges?: number[],
 *   different?: number, counts?: number[], of?: number[], column_sql?: string}} Facet
 * @typedef {{code: string, severity: string, rule: string | null, message: string,
 *   hint: string | null, count: number, named: number, records: Place[],
 *   places: string[]}} Card
 * @typedef {{state: string, done?: number, of?: number, why?: string, cards: Card[]}} Findings
 * @typedef {{added: number, removed: number, changed: number, moved: number, unchanged: number,
 *   renamed: number, verdict: string, why: string, version: string | null, hint: string | null,
 *   features: {name: string, change: string}[]}} Comparison
 */

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

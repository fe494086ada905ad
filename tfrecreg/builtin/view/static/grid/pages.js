/** The records of a selection, fetched by pages and kept while they may be looked at again. */

import { ask, isAbort } from '../page/api.js';

export const PAGE = 60;
/** Pages that are kept: 12,000 records of about a kilobyte. */
const KEPT = 200;

export class Pages {
  /**
   * @param {number} target
   * @param {string} selection
   * @param {number} total number of records in the selection
   * @param {() => void} arrived is called when a page has come
   * @param {(error: unknown) => void} failed
   */
  constructor(target, selection, total, arrived, failed) {
    this.target = target;
    this.selection = selection;
    this.total = total;
    this.arrived = arrived;
    this.failed = failed;
    /** @type {Map<number, import('../page/api.js').Rec[]>} */
    this.pages = new Map();
    /** @type {Map<number, AbortController>} */
    this.asked = new Map();
  }

  /** The record at a position, where its page is there. @param {number} at */
  get(at) {
    return this.pages.get(Math.floor(at / PAGE))?.[at % PAGE];
  }

  /**
   * Fetch the pages with these positions, and stop fetching all others.
   * @param {number} first
   * @param {number} last
   */
  want(first, last) {
    const from = Math.max(0, Math.floor(first / PAGE));
    const to = Math.floor(Math.min(last, this.total - 1) / PAGE);
    for (const [page, controller] of this.asked) {
      if (page < from - 1 || page > to + 1) controller.abort();
    }
    for (let page = from; page <= to; page += 1) this.fetch(page);
  }

  /** The record at a position, fetched where it must be. @param {number} at */
  async record(at) {
    if (at < 0 || at >= this.total) return undefined;
    await this.fetch(Math.floor(at / PAGE));
    return this.get(at);
  }

  /** Forget everything: what is still under way does not arrive. */
  close() {
    for (const controller of this.asked.values()) controller.abort();
    this.asked.clear();
    this.pages.clear();
  }

  /** @param {number} page */
  async fetch(page) {
    if (this.pages.has(page) || this.asked.has(page)) return;
    const controller = new AbortController();
    this.asked.set(page, controller);
    try {
      const question = { selection: this.selection, from: page * PAGE, count: PAGE };
      const told = await ask(`api/t/${this.target}/records`, question, controller.signal);
      this.keep(page, told.records);
    } catch (error) {
      if (!isAbort(error)) this.failed(error);
      return;
    } finally {
      if (this.asked.get(page) === controller) this.asked.delete(page);
    }
    this.arrived();
  }

  /** @param {number} page @param {import('../page/api.js').Rec[]} records */
  keep(page, records) {
    this.pages.set(page, records);
    const oldest = this.pages.keys().next().value;
    if (this.pages.size > KEPT && oldest !== undefined) this.pages.delete(oldest);
  }
}

/** The viewer: what the address says is what is shown; everything else only changes the address. */

import { Records } from './grid/records.js';
import { ask, isAbort, lastOnly, words } from './page/api.js';
import { alarm, byId, count, el, keep, kept, message } from './page/dom.js';
import { begin, go, NO_FILTERS, onChange, view } from './page/state.js';
import { drawDatasets, drawTargets, settleTarget, visit } from './page/targets.js';
import { RecordPanel } from './record/record.js';
import { Compare } from './tabs/compare.js';
import { drawFindings } from './tabs/findings.js';

/** Milliseconds between questions while the catalog or a check is being made. */
const POLL = 700;
/** The name of the colors that this browser was left with. */
const KEY = 'tfrecreg-theme';
const TABS = ['grid', 'findings', 'compare'];

let targets = { targets: [], datasets: [], registry: null };
let about = null;
/** What the panel shows: the value of `open`, so that it is shown once. */
let shown = '';
let checked = -1;

const askAbout = lastOnly();
const askFindings = lastOnly();
const records = new Records({
  open: (record, at) => go({ open: `${record.shard}.${record.record}`, position: at }),
  redraw: () => panel.redraw(),
});
const panel = new RecordPanel(byId('record'), {
  open: (place, at) =>
    go({
      open: `${place.shard}.${place.record}${panel.target === view.t ? '' : `@${panel.target}`}`,
      position: at,
    }),
  close: () => go({ open: '', position: -1 }),
  pages: () => (panel.target === view.t ? records.grid.pages : null),
  about: () => (panel.target === view.t ? about : null),
});
const compare = new Compare(byId('compare-view'), {
  open: (target, record) =>
    go({
      open: `${record.shard}.${record.record}${target === view.t ? '' : `@${target}`}`,
      position: -1,
    }),
});

/** Show what the view says. */
async function update() {
  const open = view.open;
  drawTargets(byId('target'), targets);
  showTab();
  if (view.t < 0) return;
  if (about?.id !== view.t && !(await load())) return;
  if (view.tab === 'compare') await compareTargets();
  else if (view.tab === 'findings') await showFindings();
  else await records.update();
  // Answers may come late: the panel follows the newest view, which has its own call.
  if (open === view.open) await showRecord();
}

function showTab() {
  const tab = view.t < 0 ? 'datasets' : TABS.includes(view.tab) ? view.tab : 'grid';
  for (const each of [...TABS, 'datasets']) byId(`${each}-view`).hidden = each !== tab;
  for (const each of TABS) {
    const button = byId(`tab-${each}`);
    button.setAttribute('aria-selected', String(each === tab));
    button.tabIndex = each === tab || (tab === 'datasets' && each === 'grid') ? 0 : -1;
    button.disabled = view.t < 0;
  }
  if (tab === 'datasets') drawDatasets(byId('datasets-view'), targets);
  document.title = `${targets.targets.find(({ id }) => id === view.t)?.name ?? 'Datasets'} – tfrecreg view`;
}

/** Fetch what is known about the target; whether it came. */
async function load() {
  const t = view.t;
  try {
    const told = await askAbout(`api/t/${t}`);
    if (!targets.targets.some(({ id }) => id === t)) targets = await ask('api/targets');
    take(told);
    return true;
  } catch (error) {
    if (!isAbort(error)) note([words(error)]);
    return false;
  }
}

function take(told) {
  about = told;
  checked = -1;
  const name = told.name.split('@')[0];
  const versions = targets.datasets.find((each) => each.name === name)?.versions ?? [];
  records.set(
    told,
    versions.map((version) => `${name}@${version}`).filter((reference) => reference !== told.name),
  );
  drawTargets(byId('target'), targets);
  byId('digest').textContent = told.digest ? told.digest.slice(0, 19) : '';
  byId('digest').title = told.digest ?? '';
  note([...told.notes, ...lost(told)]);
  followCatalog();
  void countFindings();
}

function lost(told) {
  const bad = told.shards.filter(({ state }) => state !== 'ok');
  if (bad.length && told.shards.length === 1) return [`The file is ${bad[0].state}: see Findings`];
  return bad.length
    ? [
        `${count(bad.length)} of ${count(told.shards.length)} shards ${bad.length === 1 ? 'is' : 'are'} damaged or gone: see Findings`,
      ]
    : [];
}

function note(lines) {
  byId('notes').replaceChildren(...lines.map((line) => el('p', {}, ...message(line))));
}

/** Say how far the catalog is, and go on when it is there. */
function followCatalog() {
  const told = about;
  if (!told) return;
  const { state, done, of, why } = told.catalog;
  byId('catalog').textContent =
    state === 'ready'
      ? ''
      : state === 'making'
        ? `The catalog is being made${of ? `: ${count(done)} of ${count(of)}` : '…'}`
        : `No filters: ${why}`;
  if (state === 'making') setTimeout(() => void again(told), POLL);
}

async function again(told) {
  if (told !== about) return;
  const now = await ask(`api/t/${told.id}`).catch(() => null);
  if (told !== about || !now) return;
  about = now;
  if (now.catalog.state !== 'making') {
    records.ready(now);
    if (view.tab === 'grid') await records.update();
  }
  followCatalog();
}

/** The number at the tab of the findings. */
async function countFindings() {
  try {
    const found = await askFindings(`api/t/${view.t}/findings`);
    const total = found.cards.length;
    const hasError = found.cards.some(({ severity }) => severity === 'error');
    byId('findings-count').hidden = total === 0;
    byId('findings-count').classList.toggle('mild', !hasError);
    byId('findings-count').textContent = count(total);
    if (view.tab === 'findings') draw(found);
    if (found.state === 'checking')
      setTimeout(() => {
        if (view.t === about?.id) void countFindings();
      }, POLL);
  } catch (error) {
    if (isAbort(error)) return;
    byId('findings-view').replaceChildren(alarm(words(error)));
  }
}

async function showFindings() {
  if (checked === view.t) return;
  checked = view.t;
  await countFindings();
}

function draw(found) {
  drawFindings(byId('findings-view'), view.t, found, {
    open: (place) => go({ open: `${place.shard}.${place.record}`, position: -1 }),
    filter: (code) => go({ ...NO_FILTERS, tab: 'grid', findings: code, at: 0 }),
    filters: about?.catalog.state === 'ready',
  });
}

async function compareTargets() {
  if (!view.compare && targets.targets.length > 1) view.compare = firstPair();
  const known = view.compare.split(',').filter(Boolean).map(Number);
  if (known.some((each) => !targets.targets.some(({ id }) => id === each)))
    targets = await ask('api/targets').catch(() => targets);
  await compare.show(targets);
}

/** Open, change or close the panel of a record. */
async function showRecord() {
  if (view.open === shown) return;
  shown = view.open;
  const found = /^(\d+)\.(\d+)(?:@(\d+))?$/.exec(view.open);
  if (found) {
    await panel.show(
      Number(found[3] ?? view.t),
      { shard: Number(found[1]), record: Number(found[2]) },
      view.position,
    );
    return;
  }
  const at = panel.at;
  panel.close();
  if (at >= 0 && view.tab === 'grid') records.grid.focus(at);
}

function listen() {
  for (const tab of TABS) {
    byId(`tab-${tab}`).addEventListener('click', () =>
      go({ tab, ...(tab === 'compare' && !view.compare ? { compare: firstPair() } : {}) }),
    );
    byId(`tab-${tab}`).addEventListener('keydown', (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (by) byId(`tab-${TABS[(TABS.indexOf(tab) + by + TABS.length) % TABS.length]}`).focus();
    });
  }
  byId('target').addEventListener('change', (event) => {
    const value = event.target.value;
    if (value.startsWith('r')) void visit(value.slice(1));
    else if (value)
      go({
        t: Number(value.slice(1)),
        tab: view.tab,
        at: 0,
        open: '',
        sort: '',
        desc: false,
        ...NO_FILTERS,
      });
  });
  document.addEventListener('keydown', (event) => {
    if (
      event.key !== '/' ||
      event.target.closest('input, select, textarea, dialog')
    )
      return;
    event.preventDefault();
    byId('where').focus();
  });
}

/** Two targets that were named are meant to be compared. */
function firstPair() {
  const [a, b] = targets.targets;
  return a && b ? `${a.id},${b.id}` : `,${view.t}`;
}

async function start() {
  beginTheme(byId('theme'));
  begin();
  try {
    targets = await ask('api/targets');
  } catch (error) {
    note([words(error)]);
    return;
  }
  settleTarget(targets);
  listen();
  onChange(() => void update());
  await update();
}

/** Light or dark: what the system says, until the user says something else. */
function beginTheme(button) {
  const system = matchMedia('(prefers-color-scheme: dark)');
  let chosen = kept(KEY);
  const isDark = () => (chosen ?? (system.matches ? 'dark' : 'light')) === 'dark';
  const show = () => {
    document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
    button.replaceChildren(el('span', { 'aria-hidden': 'true', text: isDark() ? '☀' : '☾' }));
    button.title = isDark() ? 'Light colors' : 'Dark colors';
    button.setAttribute('aria-label', button.title);
  };
  button.addEventListener('click', () => {
    chosen = isDark() ? 'light' : 'dark';
    keep(KEY, chosen);
    show();
  });
  system.addEventListener('change', show);
  show();
}

void start();

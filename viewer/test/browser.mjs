// Chromium, a page in it, and what the tests ask of pages.
import { execFileSync } from 'node:child_process';
import { access, mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { chromium } from 'playwright-core';
import { template } from '../build.mjs';
import { pageOf } from './sample.mjs';

/** Where pages and screenshots go. */
export const folder = process.env.MEMPROF_TEST_SCREENSHOTS ?? join(tmpdir(), 'memprof-viewer');

export async function findChromium() {
  for (const path of [process.env.MEMPROF_TEST_CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']) {
    if (path && (await access(path).then(() => true, () => false))) return path;
  }
  return null;
}

/** Nothing but what is measured is about time: on a machine that is busy with other tests it may take long. */
const patience = 120_000;

export const launch = async () => chromium.launch({ executablePath: await findChromium(), args: ['--no-sandbox', '--disable-gpu'], timeout: patience });

let made;
/** Writes a page of `runOf`'s answer, and gives its path. */
export async function write(name, run) {
  made ??= template();
  await mkdir(folder, { recursive: true });
  const path = join(folder, `${name}.html`);
  await writeFile(path, pageOf(await made, run));
  return path;
}

/**
 * Opens a page from disk. `messages` are everything that it said on its console, and every request it made. `prepare` is called
 * before.
 */
export async function open(browser, path, { hash = '', width = 1280, height = 900, scheme = 'light', prepare = async () => {} } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, offline: true });
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  page.messages = [];
  page.on('console', (message) => page.messages.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => page.messages.push(`error: ${error.message}`));
  page.on('request', (request) => {
    if (request.url().split('#')[0] !== pathToFileURL(path).href) page.messages.push(`request: ${request.url()}`);
  });
  await prepare(page);
  await page.goto(pathToFileURL(path).href + hash);
  await page.waitForSelector('main, [role=alert]');
  await settle(page);
  return page;
}

/** Pages that memprof made: those that MEMPROF_TEST_PAGES names, and one of a training of examples/nano_gpt. */
export async function realPages() {
  const pages = (process.env.MEMPROF_TEST_PAGES ?? '').split(':').filter((p) => p);
  if (process.env.MEMPROF_TEST_NANO_GPT) {
    await mkdir(folder, { recursive: true });
    pages.push(join(folder, 'nano_gpt.html'));
    execFileSync(process.env.MEMPROF_TEST_NANO_GPT, ['--steps', '6', '--layers', '2', '--d-model', '32', '--html', pages.at(-1)], { stdio: 'ignore' });
  }
  return pages;
}

/** After two frames everything that was to be drawn is drawn. */
export const settle = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** Starts to count the processor time of the page's main thread, which does not depend on what else the machine does. */
export async function countProcessorTime(page) {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  page.processorMs = async () => (await session.send('Performance.getMetrics')).metrics.find((m) => m.name === 'TaskDuration').value * 1000;
}

export async function shot(page, name, fullPage = true) {
  await mkdir(folder, { recursive: true });
  // Charts are drawn when they come into sight.
  if (fullPage) {
    for (const canvas of await page.locator('canvas').all()) {
      if (!(await canvas.isVisible())) continue;
      await canvas.scrollIntoViewIfNeeded();
      await settle(page);
    }
    await page.evaluate(() => scrollTo(0, 0));
    await settle(page);
  }
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage });
}

/** The document in a page, as its writer put it there. */
export function runIn(html) {
  const block = (id) => {
    const found = html.match(new RegExp(`id="${id}">([^<]*)<`));
    return found && gunzipSync(Buffer.from(found[1], 'base64'));
  };
  return JSON.parse(block('memprof-run').toString());
}

/** "23.2 MiB" as docs/show.md defines it: three significant digits in a unit of 1024. */
export function shownBytes(value) {
  const size = Math.abs(value);
  const sign = value < 0 ? '\u2212' : '';
  if (size < 1024) return `${sign}${size} B`;
  const unit = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'].findIndex((_, i) => size / 1024 ** (i + 1) < 999.5);
  const text = (size / 1024 ** (unit + 1)).toPrecision(3);
  return `${sign}${text} ${['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'][unit]}`;
}

export const exactBytes = (value) => `${value < 0 ? '\u2212' : ''}${Math.abs(value).toLocaleString('en-US')} B`;

/** The cells of a table: an array of rows, each of the shown texts; `titles` are what the pointer shows. */
export const rowsOf = (page, label) =>
  page.evaluate(
    (wanted) =>
      [...document.querySelectorAll('.rows')].find((e) => e.getAttribute('aria-label') === wanted) &&
      [...[...document.querySelectorAll('.rows')].find((e) => e.getAttribute('aria-label') === wanted).querySelectorAll('tbody tr:not(.spacer)')].map((row) => ({
        cells: [...row.cells].map((c) => c.textContent),
        titles: [...row.cells].map((c) => c.title),
      })),
    label,
  );

/** What the address says of the state. The page writes it 250 ms after a change: a later timer of its own comes after that. */
export async function state(page) {
  const hash = await page.evaluate(() => new Promise((done) => setTimeout(() => done(location.hash), 300)));
  const [view, query] = hash.slice(1).split('?');
  return { view, ...Object.fromEntries(new URLSearchParams(query)) };
}

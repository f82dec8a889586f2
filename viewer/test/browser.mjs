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
export const patience = 120_000;

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

let spare;
/**
 * Opens a page from disk. `messages` are everything that it said on its console, and every request it made. `prepare` is called
 * before, on a new tab; else it is the tab of a page that was closed, since a new one costs the browser a second of processor time.
 */
export async function open(browser, path, { hash = '', width = 1280, height = 900, scheme = 'light', prepare } = {}) {
  const page = (!prepare && spare) || (await (await browser.newContext({ offline: true })).newPage());
  if (page === spare) spare = undefined;
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme: scheme });
  page.setDefaultTimeout(patience);
  page.messages = [];
  page.on('console', (message) => page.messages.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => page.messages.push(`error: ${error.message}`));
  page.on('request', (request) => {
    if (request.url().split('#')[0] !== pathToFileURL(path).href) page.messages.push(`request: ${request.url()}`);
  });
  await prepare?.(page);
  await page.goto(pathToFileURL(path).href + hash);
  await painted(page);
  return page;
}

/** Closes a page, and leaves its tab as a new one for the next, unless there is one or the test failed. */
export async function close(page, passed = true) {
  if (!passed || spare) return page.context().close();
  await page.evaluate(() => localStorage.clear());
  page.removeAllListeners();
  await page.mouse.move(0, 0);
  await page.emulateMedia({ media: null });
  await page.goto('about:blank');
  spare = page;
}

/** Waits for the page's own word that it was painted, or for its message that it cannot be. */
export async function painted(page) {
  await page.waitForFunction(() => document.querySelector('[role=alert]') || performance.getEntriesByName('memprof-first-paint').length > 0);
  await settle(page);
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

/** Whatever was to be drawn is drawn: two frames, with a task between them, since observers report after a frame. */
export const settle = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done))))));

/** Follows a link within the page. The browser says so later, after any number of frames where the machine is busy. */
export async function goTo(page, hash) {
  await page.evaluate(
    (to) =>
      new Promise((done) => {
        if (location.hash === to) return done();
        addEventListener('hashchange', () => done(), { once: true });
        location.hash = to;
      }),
    hash,
  );
  await settle(page);
}

/** Clicks on a link to another view, and waits until the page is there. */
export async function follow(page, selector) {
  await page.evaluate(() => {
    window.arrived = false;
    addEventListener('hashchange', () => (window.arrived = true), { once: true });
  });
  // A busy browser may replace the link before or during a click, which is then lost.
  await eventually(async () => {
    if (!(await page.evaluate(() => window.arrived))) await page.click(selector, { timeout: 5000 });
    await page.waitForFunction(() => window.arrived, null, { timeout: 1000 });
  });
  await settle(page);
}

/** Repeats a check until it holds: what follows from a pointer, or is filled in later, comes when the browser has time. */
export async function eventually(check) {
  for (const end = Date.now() + patience; ; ) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** The text of the tooltip at a point of the window. */
export async function tipAt(page, x, y) {
  await page.mouse.move(1, 1);
  await page.evaluate(() => dispatchEvent(new Event('scroll')));  // which hides one that another pointer left
  await page.mouse.move(x, y);
  await page.waitForFunction(() => !document.querySelector('#tip').hidden);
  return page.evaluate(() => document.querySelector('#tip').innerText);
}

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

/** What the address says of the state, which the page writes at once when it is left. */
export async function state(page) {
  const hash = await page.evaluate(() => {
    dispatchEvent(new Event('pagehide'));
    return location.hash;
  });
  const [view, query] = hash.slice(1).split('?');
  return { view, ...Object.fromEntries(new URLSearchParams(query)) };
}

// Firefox as Debian has it, over WebDriver BiDi: Playwright drives only builds of its own.
import { access } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import puppeteer from 'puppeteer-core';
import { painted, patience } from './browser.mjs';

export async function findFirefox() {
  for (const path of [process.env.MEMPROF_TEST_FIREFOX, '/usr/bin/firefox-esr', '/usr/bin/firefox']) {
    if (path && (await access(path).then(() => true, () => false))) return path;
  }
  return null;
}

export const launch = async () => puppeteer.launch({ browser: 'firefox', executablePath: await findFirefox(), headless: true, timeout: patience });

/**
 * Opens a page from disk, as `open` of browser.mjs does. Firefox does not report violations of a policy as messages, so the page
 * counts them.
 */
export async function open(browser, path, { hash = '', width = 1280, height = 900 } = {}) {
  const page = await browser.newPage();
  page.setDefaultTimeout(patience);
  page.messages = [];
  page.on('console', (message) => page.messages.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => page.messages.push(`error: ${error.message}`));
  page.on('request', (request) => {
    const { protocol } = new URL(request.url());
    if (protocol !== 'data:' && request.url().split('#')[0] !== pathToFileURL(path).href) page.messages.push(`request: ${request.url()}`);
  });
  await page.evaluateOnNewDocument(() => {
    window.violations = [];
    document.addEventListener('securitypolicyviolation', (event) => window.violations.push(event.effectiveDirective));
  });
  await page.setViewport({ width, height });
  await page.goto(pathToFileURL(path).href + hash);
  await painted(page);
  return page;
}

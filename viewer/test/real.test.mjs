// The same invariants on pages that memprof made: of a training of examples/nano_gpt, and of whatever MEMPROF_TEST_PAGES names.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { close, exactBytes, goTo, launch, open, realPages, rowsOf, runIn, shot, shownBytes } from './browser.mjs';

const pages = await realPages();

let browser;
if (pages.length > 0) {
  before(async () => (browser = await launch()));
  after(() => browser.close());
} else {
  it('needs a page: MEMPROF_TEST_PAGES and MEMPROF_TEST_NANO_GPT name none', { skip: true });
}

const digits = (text) => Number(text.replace('\u2212', '-').replace(/[^0-9-]/g, ''));

for (const path of pages) {
  describe(`the page ${basename(path)}`, () => {
    it('shows the profile’s numbers in every space, and compositions that sum', async () => {
      const run = runIn(await readFile(path, 'latin1'));
      const page = await open(browser, path);
      for (const space of run.profile.spaces) {
        if (space.cumulative_peak === 0) continue;
        await goTo(page, `#live?space=${encodeURIComponent(space.name)}&at=peak`);
        assert.equal(await page.locator('[data-answer=peak] .value').innerText(), shownBytes(space.cumulative_peak));
        assert.ok((await page.locator('#live .lead').innerText()).includes(`(${exactBytes(space.cumulative_peak)})`));
        await page.locator('#live [data-value=operations]').click();
        const label = 'What was live at the selected moment, by operation and category';
        const sum = (rows) => rows.reduce((total, row) => total + digits(row.titles[2] ?? '0'), 0);
        assert.equal(sum(await rowsOf(page, label)), space.cumulative_peak, space.name);
        for (const category of space.live_at_peak.by_category) {
          const of = (await rowsOf(page, label)).filter((r) => r.cells[1] === category.owner.replaceAll('_', ' '));
          if (run.detail) assert.equal(sum(of), category.bytes, `${space.name} ${category.owner}`);
        }
        if (!run.detail) continue;
        // Any moment sums to what the sentence says.
        for (let i = 0; i < 12; i += 1) {
          await goTo(page, `#live?space=${encodeURIComponent(space.name)}&at=e${Math.floor(((i + 0.5) / 12) * run.detail.events)}`);
          const total = digits(/\(([\d,]+) B\)/.exec(await page.locator('#live .lead').innerText())[1]);
          const rows = await rowsOf(page, label);
          if (rows.every((r) => r.titles.length > 2)) assert.equal(sum(rows), total, `${space.name}, part ${i}`);
        }
      }
      assert.deepEqual(page.messages, []);
      await close(page);
    });

    it('divides what was live among the calls that asked for it, if it was recorded with stacks', async () => {
      const run = runIn(await readFile(path, 'latin1'));
      if (!run.detail?.stacks) return;
      const space = run.profile.spaces[run.detail.stacks.space];
      const page = await open(browser, path, { hash: `#live?space=${encodeURIComponent(space.name)}` });
      await page.locator('[data-value=by-call]').click();
      for (const [moment, total] of [['peak', space.cumulative_peak], ['end', space.cumulative_current], ['all', space.allocations]]) {
        await page.locator(`.stacks [data-value=${moment}]`).click();
        assert.ok((await page.locator('.stacks .lead').innerText()).includes(`(${exactBytes(total)})`), moment);
      }
      assert.deepEqual(page.messages, []);
      await close(page);
    });

    it('looks like this', async () => {
      for (const [name, options] of [['light', {}], ['dark', { scheme: 'dark', hash: '#timeline?by=operation&unit=event' }], ['400', { width: 400, height: 800 }]]) {
        const page = await open(browser, path, options);
        await shot(page, `${basename(path, '.html')}-${name}`);
        assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= (options.width ?? 1280));
        assert.deepEqual(page.messages, []);
        await close(page);
      }
    });
  });
}

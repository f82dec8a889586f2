// What has to hold in every browser, in Firefox: pages open from disk and say nothing, their values are the profile's, and keys,
// pointers and links work. What does not depend on the browser is tested in Chromium.
import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually, exactBytes, folder, follow, goTo, realPages, rowsOf, runIn, settle, shownBytes, state, tipAt, write } from './browser.mjs';
import { launch, open } from './firefox.mjs';
import { huge, Recorder, runOf, training } from './sample.mjs';

let browser;
before(async () => (browser = await launch()));
after(() => browser?.close());

async function onFile(path, options, test) {
  const page = await open(browser, path, options);
  try {
    await test(page);
    assert.deepEqual(page.messages, []);
    assert.deepEqual(await page.evaluate(() => window.violations), []);
  } finally {
    await page.close();
  }
}
const on = async (name, run, options, test) => onFile(await write(name, run), options, (page) => test(page));

const GiB = 2 ** 30;
const trained = () => runOf(training(), { capacities: [0, GiB], device: 'gpu-1gb', reserved: [0, 80 * 2 ** 20], stepEnd: 'OPTIMIZER_STEP' });
const text = (page, selector) => page.$eval(selector, (element) => element.innerText);
const press = async (page, key) => {
  await page.keyboard.press(key);
  await settle(page);
};
const shot = async (page, name) => {
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `firefox-${name}.png`) });
};
const liveRows = 'What was live at the selected moment, by operation and category';
const digits = (value) => Number(value.replace('\u2212', '-').replace(/[^0-9-]/g, ''));

describe('in Firefox a page', () => {
  it('answers what the profile says', async () => {
    const made = trained();
    const space = made.run.profile.spaces.find((s) => s.name === 'cuda:0');
    await on('training', made, {}, async (page) => {
      assert.equal(await text(page, '[data-answer=peak] .value'), shownBytes(space.cumulative_peak));
      assert.equal(await page.$eval('[data-answer=peak] .value', (e) => e.title), exactBytes(space.cumulative_peak));
      assert.equal(await text(page, '[data-answer=end] .value'), shownBytes(space.cumulative_current));
      assert.match(await text(page, '[data-answer=fit]'), new RegExp(`Yes, ${shownBytes(GiB - space.reserved.peak)} to spare`));
      await shot(page, 'training');
    });
  });

  it('shows in its tables what was live at every moment', async () => {
    const recorder = training({ steps: 2, layers: 2 });
    await on('composition-firefox', runOf(recorder, { stepEnd: 'OPTIMIZER_STEP' }), { hash: '#live?space=cuda%3A0&at=e0' }, async (page) => {
      let total = 0;
      const live = new Map();
      for (const [index, event] of recorder.events.entries()) {
        if (event.space !== 1) continue;
        if (event.kind === 'allocate') live.set(event.address, event.bytes);
        total += event.kind === 'allocate' ? event.bytes : event.kind === 'free' ? -live.get(event.address) : 0;
        await goTo(page, `#live?space=cuda%3A0&at=e${index}`);
        assert.ok((await text(page, '#live .lead')).includes(`(${exactBytes(total)})`), `event ${index}`);
        const rows = (await rowsOf(page, liveRows)).filter((row) => row.cells.length > 2);
        assert.equal(rows.reduce((sum, row) => sum + digits(row.titles[2]), 0), total, `event ${index}`);
      }
    });
  });

  it('is complete by keys', async () => {
    await on('training', trained(), { hash: '#timeline?unit=event' }, async (page) => {
      await press(page, 'p');
      assert.match(await text(page, '#live .lead'), /This is the peak\./);
      const peak = (await state(page)).at;
      await press(page, 'ArrowLeft');
      await press(page, 'ArrowRight');
      assert.equal((await state(page)).at, peak);
      await press(page, '+');
      const zoomed = await state(page);
      assert.ok(Number(zoomed.to) - Number(zoomed.from) > 0);
      await press(page, 'd');
      assert.ok(Number((await state(page)).from) > Number(zoomed.from));
      await press(page, '0');
      assert.equal((await state(page)).from, undefined);
      await press(page, '3');
      assert.equal((await state(page)).view, 'live');
      // Firefox has a search of its own on this key.
      await press(page, '/');
      assert.equal(await page.evaluate(() => document.activeElement.type), 'search');
      await page.evaluate(() => document.activeElement.blur());
      await press(page, '?');
      assert.ok(await page.$eval('dialog', (dialog) => dialog.open));
      await press(page, 'Escape');
      const reached = new Set();
      for (let i = 0; i < 120; i += 1) {
        await page.keyboard.press('Tab');
        reached.add(await page.evaluate(() => document.activeElement.closest('section')?.id ?? document.activeElement.closest('header')?.tagName ?? ''));
      }
      for (const id of ['answers', 'timeline', 'live', 'lanes', 'blocks', 'segments', 'operations', 'HEADER']) assert.ok(reached.has(id), id);
    });
  });

  it('zooms and shows tooltips under the pointer', async () => {
    await on('training', trained(), { hash: '#timeline?unit=event' }, async (page) => {
      const canvas = await page.$('#timeline canvas');
      await canvas.scrollIntoView();
      const box = await canvas.boundingBox();
      assert.match(await tipAt(page, box.x + box.width / 2, box.y + 100), /\([\d,]+ B\)/);
      await page.mouse.wheel({ deltaY: -200 });
      await eventually(async () => assert.ok(Number((await state(page)).from) > 0, 'the wheel zooms in'));
      await press(page, '0');
      assert.equal((await state(page)).from, undefined);
      const drag = async (from, to) => {
        await page.mouse.move(box.x + from, box.y + 100);
        await page.mouse.down();
        await page.mouse.move(box.x + to, box.y + 100, { steps: 4 });
        await page.mouse.up();
      };
      await page.keyboard.down('Shift');
      await drag(300, 500);
      await page.keyboard.up('Shift');
      const scale = (await page.evaluate(() => Number(/([\d,]+) events/.exec(document.querySelector('.about').textContent)[1].replaceAll(',', '')))) / (box.width - 84);
      await eventually(async () => {
        const { from, to } = await state(page);
        assert.ok(Math.abs(from - (300 - 72) * scale) < 2 && Math.abs(to - (500 - 72) * scale) < 2, 'a drag with Shift zooms to what was dragged over');
      });
      const before = Number((await state(page)).from);
      await drag(500, 600);
      await eventually(async () => assert.ok(Number((await state(page)).from) < before, 'a drag pans'));
    });
  });

  it('follows its links, and an address that was kept', async () => {
    await on('training', trained(), {}, async (page) => {
      await follow(page, '[data-answer=growth] a');
      assert.equal((await state(page)).view, 'segments');
      await follow(page, '[data-answer=owners] a');
      const { find } = await state(page);
      assert.ok(find.length > 0);
      assert.equal(await page.$eval('#live input[type=search]', (input) => input.value), find);
    });
    const hash = '#timeline?space=cpu&by=operation&unit=event&from=2&to=90&at=e8';
    await on('training', trained(), { hash }, async (page) => {
      assert.match(await text(page, '[data-answer=peak] h2'), /Peak of cpu/);
      await press(page, 'ArrowRight');
      assert.deepEqual({ ...(await state(page)), at: '' }, { view: 'timeline', space: 'cpu', by: 'operation', unit: 'event', from: '2', to: '90', at: '' });
    });
  });

  it('is dark where that was chosen, and fits a narrow window', async () => {
    await on('training', trained(), { width: 500 }, async (page) => {
      await page.click('.theme');
      await settle(page);
      assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(21, 24, 28)');
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
      await shot(page, 'narrow-dark');
    });
  });

  it('shows hostile names as text', async () => {
    const hostile = ['<img src=x onerror="alert(1)">', '</script><script>alert(2)</script>', '\u202egnirts', '\u0000\u0007\n\t'];
    let next = 0;
    const made = runOf(training({ steps: 2, spaces: ['cpu', '<b>cuda</b>'], names: () => hostile[next++ % hostile.length] }), { title: hostile[1], notes: [hostile[0]], stepEnd: 'x' });
    await on('hostile-firefox', made, {}, async (page) => {
      assert.equal(await page.evaluate(() => document.querySelectorAll('img, main script').length), 0);
      assert.ok((await page.evaluate(() => document.body.innerText)).includes('<img src=x'));
    });
  });

  it('opens of an empty capture', async () => {
    const nothing = new Recorder({ spaces: [] });
    nothing.segment('END_TRACE');
    await on('empty', runOf(nothing), {}, async (page) => {
      assert.match(await text(page, 'main'), /Nothing was recorded/);
      for (const key of ['p', 'n', '+', 'ArrowLeft', '3', '0', 'c', 'x']) await press(page, key);
    });
  });

  it('of ten million events is drawn and panned', async (context) => {
    await on('huge', huge(), {}, async (page) => {
      const painted = await page.evaluate(() => performance.getEntriesByType('measure').find((m) => m.name === 'memprof-first-paint')?.duration);
      context.diagnostic(`first paint after ${painted.toFixed(0)} ms`);
      for (const key of ['+', '+', 'd', 'd', 'a', 'p', '0']) await press(page, key);
    });
  });

  it('that memprof made shows its profile’s numbers', async (context) => {
    const pages = await realPages();
    if (pages.length === 0) context.skip('MEMPROF_TEST_PAGES and MEMPROF_TEST_NANO_GPT name none');
    for (const path of pages) {
      const run = runIn(await readFile(path, 'latin1'));
      await onFile(path, {}, async (page) => {
        for (const space of run.profile.spaces) {
          if (space.cumulative_peak === 0) continue;
          await goTo(page, `#live?space=${encodeURIComponent(space.name)}&at=peak`);
          assert.equal(await text(page, '[data-answer=peak] .value'), shownBytes(space.cumulative_peak));
          assert.ok((await text(page, '#live .lead')).includes(`(${exactBytes(space.cumulative_peak)})`));
          await page.evaluate(() => document.querySelector('#live [data-value=operations]').click());
          await settle(page);
          assert.equal((await rowsOf(page, liveRows)).reduce((total, row) => total + digits(row.titles[2] ?? '0'), 0), space.cumulative_peak, space.name);
        }
        await shot(page, 'real');
      });
    }
  });
});
